#include "shim/explain.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <initializer_list>

#include "shim/guard.h"
#include "shim/run_directory.h"
#include "shim/session.h"
#include "shim/start_environment.h"
#include "shim/text.h"

namespace cudiag {
namespace {

constexpr size_t kPath = 4096;

struct Command {
    char path[kPath];
    char pid[24];
    const char* arguments[10];
    const char* environment[64];
};

Command command;  // one thread prepares and starts at a time
bool starting = false;
int32_t early_child = 0;
bool early_started = false;

// Path of our own file by /proc/self/maps: the link map holds the name as LD_PRELOAD gave it, which
// may be relative.
bool own_path(char* path, size_t size) {
    const int maps = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
    if (maps < 0) {
        return false;
    }
    const auto wanted = reinterpret_cast<uintptr_t>(&own_path);
    static char buffer[16384];
    size_t have = 0;
    bool found = false;
    for (long got = 1; got > 0 && !found;) {
        got = read(maps, buffer + have, sizeof buffer - 1 - have);
        have += got > 0 ? static_cast<size_t>(got) : 0;
        buffer[have] = '\0';
        char* line = buffer;
        for (char* end = strchr(line, '\n'); end != nullptr && !found;
             line = end + 1, end = strchr(line, '\n')) {
            *end = '\0';
            uintptr_t bounds[2] = {0, 0};
            const char* at = line;
            for (uintptr_t& bound : bounds) {  // begin-end, hexadecimal
                for (; *at != '-' && *at != ' ' && *at != '\0'; ++at) {
                    bound = bound * 16 +
                            static_cast<uintptr_t>(*at <= '9' ? *at - '0' : *at - 'a' + 10);
                }
                at += *at != '\0' ? 1 : 0;
            }
            const char* file = strchr(at, '/');
            if (wanted >= bounds[0] && wanted < bounds[1] && file != nullptr) {
                Text text{path, size};
                text.add(file);
                found = !text.cut();
            }
        }
        have = strlen(line);
        memmove(buffer, line, have + 1);
        if (have >= sizeof buffer - 1) {
            have = 0;  // a line longer than any path
        }
    }
    (void)close(maps);
    return found;
}

bool find_command(char* path, size_t size) {
    static char self[kPath];
    if (!own_path(self, sizeof self)) {
        return false;
    }
    char* slash = strrchr(self, '/');
    *slash = '\0';
    for (const char* place : {"/cudiag", "/../bin/cudiag", "/../../bin/cudiag"}) {
        Text text{path, size};
        text.add(self).add(place);
        if (!text.cut() && access(path, X_OK) == 0) {
            return true;
        }
    }
    return false;
}

bool prepare(const char* when) {
    if (!find_command(command.path, sizeof command.path)) {
        return false;
    }
    Text pid{command.pid, sizeof command.pid};
    pid.add(static_cast<uint64_t>(getpid()));
    const char* arguments[] = {command.path, "in-place", "--run", run_directory(), "--pid",
                               command.pid,  "--when",   when,    nullptr};
    memcpy(command.arguments, arguments, sizeof arguments);
    command_environment(command.environment,
                        sizeof command.environment / sizeof command.environment[0]);
    return true;
}

// In the child, which shares our memory until it execs (CLONE_VM | CLONE_VFORK): system calls only.
// Its descriptor table is its own. Every signal stays blocked; the command unblocks them.
int become_command(void* /*argument*/) {
    (void)syscall(SYS_dup3, 2, 1, 0);
    const int null = static_cast<int>(syscall(SYS_openat, AT_FDCWD, "/dev/null", O_RDONLY, 0));
    if (null > 0) {
        (void)syscall(SYS_dup3, null, 0, 0);
    }
#ifndef SYS_close_range
#define SYS_close_range 436
#endif
    if (syscall(SYS_close_range, 3, ~0U, 0) != 0) {  // Linux 5.9
        for (int descriptor = 3; descriptor < 1024; ++descriptor) {
            (void)syscall(SYS_close, descriptor);
        }
    }
    (void)syscall(SYS_execve, command.path, command.arguments, command.environment);
    (void)syscall(SYS_exit, 127);
    return 127;
}

// Exit signal 0: the program gets no SIGCHLD, and its own wait() does not see the child (only
// __WALL and __WCLONE do).
int32_t start() {
    alignas(16) static char stack[65536];
    sigset_t all;
    sigset_t before;
    (void)sigfillset(&all);
    (void)syscall(SYS_rt_sigprocmask, SIG_SETMASK, &all, &before, 8);
    const int child = clone(become_command, stack + sizeof stack, CLONE_VM | CLONE_VFORK, nullptr);
    (void)syscall(SYS_rt_sigprocmask, SIG_SETMASK, &before, nullptr, 8);
    return child;
}

int32_t wait_for(int32_t child, int* status) {
    return static_cast<int32_t>(syscall(SYS_wait4, child, status, WNOHANG | __WALL, nullptr));
}

// The child's pid, or 0.
int32_t start_command(const char* when) {
    if (__atomic_exchange_n(&starting, true, __ATOMIC_ACQUIRE)) {
        return 0;
    }
    const int32_t child = prepare(when) ? start() : 0;
    __atomic_store_n(&starting, false, __ATOMIC_RELEASE);
    return child > 0 ? child : 0;
}

uint64_t monotonic_ms() {
    struct timespec now {};

    (void)syscall(SYS_clock_gettime, CLOCK_MONOTONIC, &now);
    return static_cast<uint64_t>(now.tv_sec) * 1000 + static_cast<uint64_t>(now.tv_nsec) / 1000000;
}

void tell_where() {
    static char line[kPath * 2];  // one thread ends the process
    Text text{line, sizeof line};
    text.add("cudiag: recorded in ")
        .add(run_directory())
        .add("; explain it with: cudiag report ")
        .add(run_directory())
        .add("\n");
    (void)!write(2, line, text.length());
}

}  // namespace

void explain_at_exit() {
    const KeepErrno keep;
    reap_explanation();
    const int32_t child = start_command("exit");
    if (child == 0) {
        tell_where();
        return;
    }
    constexpr uint64_t kLongest = 10000;
    constexpr long kStep = 5'000'000;  // ns
    const uint64_t begin = monotonic_ms();
    int status = 0;
    int32_t ended = 0;
    while ((ended = wait_for(child, &status)) == 0 && monotonic_ms() - begin < kLongest) {
        const struct timespec pause = {0, kStep};
        (void)syscall(SYS_nanosleep, &pause, nullptr);
    }
    constexpr int kNotStarted = 127;
    if (ended == child &&
        (WIFSIGNALED(status) || (WIFEXITED(status) && WEXITSTATUS(status) == kNotStarted))) {
        tell_where();
    }
}

void explain_early() {
    const KeepErrno keep;
    if (printing() == Printing::off ||
        __atomic_exchange_n(&early_started, true, __ATOMIC_ACQ_REL) || !is_root()) {
        return;
    }
    early_child = start_command("early");
}

void reap_explanation() {
    const KeepErrno keep;
    const int32_t child = early_child;
    if (child > 0 && wait_for(child, nullptr) != 0) {
        early_child = 0;
    }
}

void forget_explanation() {
    early_child = 0;
    early_started = false;
    starting = false;
}

}  // namespace cudiag
