// cudiag run -- CMD: the program under the shim, its signals forwarded, its death by a signal
// noted, its status ours.
#include <fmt/core.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "cli/commands.h"
#include "cli/preflight.h"
#include "cli/runs.h"
#include "diagnose/memory_group.h"
#include "diagnose/proc.h"
#include "diagnose/say.h"
#include "diagnose/units.h"
#include "present/terminal.h"

namespace cudiag {
namespace {

volatile sig_atomic_t child_pid = 0;

// Signals that a user or a batch system sends to the foreground process and means for the program.
constexpr std::array kForwarded{SIGHUP,  SIGINT,  SIGQUIT, SIGTERM,
                                SIGUSR1, SIGUSR2, SIGCONT, SIGWINCH};

void forward(int signal, siginfo_t* info, void* /*context*/) {
    // The terminal sends Ctrl-C and Ctrl-\ to the whole foreground group: the program has it
    // already (si_code SI_KERNEL).
    if (child_pid > 0 && info->si_code != SI_KERNEL) {
        (void)kill(child_pid, signal);
    }
}

void forward_signals() {
    struct sigaction action {};

    action.sa_sigaction = forward;
    action.sa_flags = SA_SIGINFO | SA_RESTART;
    for (const int signal : kForwarded) {
        (void)sigaction(signal, &action, nullptr);
    }
}

std::string preload_value(const std::string& shim) {
    const char* inherited = std::getenv("LD_PRELOAD");
    return inherited == nullptr || *inherited == '\0' ? shim : shim + ":" + inherited;
}

[[noreturn]] void become(const std::vector<std::string>& command, const std::string& shim,
                         const sigset_t& mask) {
    (void)setenv("LD_PRELOAD", preload_value(shim).c_str(), 1);
    (void)std::signal(SIGPIPE, SIG_DFL);
    (void)sigprocmask(SIG_SETMASK, &mask, nullptr);
    std::vector<char*> arguments;
    arguments.reserve(command.size() + 1);
    for (const std::string& argument : command) {
        arguments.push_back(const_cast<char*>(argument.c_str()));
    }
    arguments.push_back(nullptr);
    (void)execvp(arguments.front(), arguments.data());
    const int why = errno;
    complain(say("cannot run {}: {}", command.front(), std::strerror(why)));
    _exit(why == ENOENT ? 127 : 126);  // as a shell says it
}

void print_block(const std::vector<Finding>& findings, const std::string& run) {
    const std::string text = render_findings(findings, style_for(2), run);
    if (!text.empty()) {
        fmt::print(stderr, "\n{}", text);
    }
}

// What the kernel counted while the program ran, if SIGKILL may have been its: we are in the same
// memory cgroup, and outlive it where the limit takes the largest first.
std::string killed_for_memory(int status, const std::optional<MemoryGroup>& at_start) {
    const std::optional<MemoryGroup> now = memory_group();
    if (!WIFSIGNALED(status) || WTERMSIG(status) != SIGKILL || !at_start || !now ||
        now->path != at_start->path || now->oom_kills <= at_start->oom_kills) {
        return {};
    }
    const std::string limit = now->limit == 0
                                  ? say("no limit of its own: this machine had none left")
                                  : say("limit {}", bytes_text(now->limit));
    return now->oom_kills - at_start->oom_kills == 1
               ? say("the kernel killed a process for memory in the cgroup {} meanwhile ({}): give "
                     "it more, or let the program take less",
                     now->path, limit)
               : say("the kernel killed processes for memory in the cgroup {} meanwhile ({}): give "
                     "it more, or let the program take less",
                     now->path, limit);
}

void print_post_mortem(const std::string& run, pid_t pid, int status,
                       const std::vector<Finding>& before,
                       const std::optional<MemoryGroup>& memory) {
    std::error_code error;
    const bool recorded = std::filesystem::is_directory(run, error);
    if (recorded && WIFSIGNALED(status)) {
        note_death(run, pid, status);
    }
    const bool failed = !WIFEXITED(status) || WEXITSTATUS(status) != 0;
    if (!failed) {
        return;
    }
    print_block(before, "");
    if (recorded) {
        InPlaceOptions options;
        options.run = run;
        options.pid = pid;
        (void)in_place_command(options);  // says what the program's own end has not said yet
    }
    const std::string for_memory = killed_for_memory(status, memory);
    const char* name = WIFSIGNALED(status) ? sigabbrev_np(WTERMSIG(status)) : nullptr;
    const std::string death = say("process {} died by SIG{}; ", pid, name == nullptr ? "?" : name);
    if (!for_memory.empty()) {
        complain(death + for_memory);
    } else if (!recorded && WIFSIGNALED(status)) {
        complain(death + say("nothing had been recorded that would explain it"));
    }
}

}  // namespace

int run_command(const RunOptions& options) {
    const std::string shim = shim_path();
    if (shim.empty()) {
        complain(
            say("libcudiag.so is not beside this command, nor in ../lib: cannot run under it"));
        return kCouldNotRun;
    }
    // A missing NEEDED of the executable kills it before any preload runs, and a static or setuid
    // program drops the shim.
    const std::vector<Finding> before = check_program(options.command.front());
    sigset_t all;
    sigset_t mask;
    (void)sigfillset(&all);
    (void)sigprocmask(SIG_SETMASK, &all, &mask);
    forward_signals();
    const std::optional<MemoryGroup> memory = memory_group();
    const pid_t pid = fork();
    if (pid < 0) {
        complain(say("cannot start a process: {}", std::strerror(errno)));
        return kCouldNotRun;
    }
    if (pid == 0) {
        for (const int signal : kForwarded) {
            (void)std::signal(signal, SIG_DFL);
        }
        become(options.command, shim, mask);
    }
    child_pid = pid;
    const auto ticks = start_ticks_of(pid);
    (void)sigprocmask(SIG_SETMASK, &mask, nullptr);
    int status = 0;
    while (waitpid(pid, &status, 0) < 0) {
        if (errno != EINTR) {
            complain(say("cannot wait for {}: {}", pid, std::strerror(errno)));
            return kCouldNotRun;
        }
    }
    const char* print = std::getenv("CUDIAG_PRINT");
    if (print == nullptr || std::strcmp(print, "off") != 0) {
        print_post_mortem(run_directory_of(pid, ticks.value_or(0)), pid, status, before, memory);
    }
    return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

}  // namespace cudiag
