#include "shim/explain.h"

#include <fcntl.h>
#include <linux/sched.h>
#include <signal.h>
#include <stdint.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <initializer_list>

#include "record/keep_errno.h"
#include "shim/own_file.h"
#include "shim/raw_call.h"
#include "shim/run_directory.h"
#include "shim/session.h"
#include "shim/start_environment.h"
#include "shim/text.h"

// The command is a grandchild. Between it and the program stands a keeper: a process of its own
// that shares the program's memory and never execs. The keeper's exit signal is 0, so that the
// program gets no SIGCHLD and its wait() passes the keeper over (only __WALL and __WCLONE see it);
// a child that execs gets SIGCHLD for its exit signal whatever clone said (the kernel's de_thread),
// and an orphan would fall to the program itself where that is a container's first process.
namespace cudiag {
namespace {

constexpr size_t kPath = 4096;
constexpr int kNotStarted = 127;

// Used again only after its keeper has ended, which reads it.
struct Explanation {
    int32_t keeper;
    char path[kPath];
    char pid[24];
    const char* arguments[10];
    const char* environment[64];
    alignas(16) char keeper_stack[8192];
    alignas(16) char command_stack[8192];
};

Explanation early;
Explanation late;
bool early_started = false;
bool starting = false;

bool is_program(const char* path) {
    struct stat status {};

    return syscall(SYS_newfstatat, AT_FDCWD, path, &status, 0) == 0 && S_ISREG(status.st_mode) &&
           access(path, X_OK) == 0;
}

bool ends_with(const char* text, const char* end) {
    const size_t length = strlen(text);
    const size_t tail = strlen(end);
    return length >= tail && strcmp(text + length - tail, end) == 0;
}

// The command of the same installation (cli/lib.cpp looks the other way): beside this library, as
// it is built; PREFIX/bin for PREFIX/lib and lib64; PREFIX/bin for PREFIX/lib/TRIPLET. From no
// other directory does one lead anywhere: what is there would be somebody else's.
bool find_command(char* path, size_t size) {
    static char directory[kPath];
    if (!own_path(directory, sizeof directory)) {
        return false;
    }
    *strrchr(directory, '/') = '\0';
    Text beside{path, size};
    beside.add(directory).add("/cudiag");
    if (!beside.cut() && is_program(path)) {
        return true;
    }
    if (!ends_with(directory, "/lib") && !ends_with(directory, "/lib64")) {
        char* triplet = strrchr(directory, '/');
        if (triplet != nullptr) {
            *triplet = '\0';
        }
        if (!ends_with(directory, "/lib")) {
            return false;
        }
    }
    *strrchr(directory, '/') = '\0';
    Text in_prefix{path, size};
    in_prefix.add(directory).add("/bin/cudiag");
    return !in_prefix.cut() && is_program(path);
}

bool prepare(Explanation& explanation, const char* when) {
    if (!find_command(explanation.path, sizeof explanation.path)) {
        return false;
    }
    Text pid{explanation.pid, sizeof explanation.pid};
    pid.add(static_cast<uint64_t>(getpid()));
    const char* arguments[] = {explanation.path, "in-place", "--run", run_directory(), "--pid",
                               explanation.pid,  "--when",   when,    nullptr};
    memcpy(explanation.arguments, arguments, sizeof arguments);
    command_environment(explanation.environment,
                        sizeof explanation.environment / sizeof explanation.environment[0]);
    return true;
}

#ifndef SYS_close_range
#define SYS_close_range 436
#endif

// The keeper's and the command's descriptor tables are their own.
inline void close_from(long first) {
    if (raw_call(SYS_close_range, first, ~0U, 0) != 0) {  // Linux 5.9

        struct rlimit limit {};

        (void)raw_call(SYS_prlimit64, 0, RLIMIT_NOFILE, 0, reinterpret_cast<long>(&limit));
        constexpr long kMost = 65536;
        const auto most = limit.rlim_cur < kMost ? static_cast<long>(limit.rlim_cur) : kMost;
        for (long descriptor = first; descriptor < most; ++descriptor) {
            (void)raw_call(SYS_close, descriptor);
        }
    }
}

// In the grandchild. Every signal stays blocked; the command unblocks them.
int become_command(void* argument) {
    const auto& explanation = *static_cast<const Explanation*>(argument);
    (void)raw_call(SYS_dup3, 2, 1, 0);
    (void)raw_call(SYS_close, 0);
    (void)raw_call(SYS_openat, AT_FDCWD, reinterpret_cast<long>("/dev/null"), O_RDONLY);
    close_from(3);
    (void)raw_call(SYS_execve, reinterpret_cast<long>(explanation.path),
                   reinterpret_cast<long>(explanation.arguments),
                   reinterpret_cast<long>(explanation.environment));
    return kNotStarted;
}

// In the keeper: raw system calls only, since the thread pointer is that of the program's thread.
int keep_command(void* argument) {
    auto& explanation = *static_cast<Explanation*>(argument);
    const long child = cudiag_clone(CLONE_VM | CLONE_VFORK | SIGCHLD,
                                    explanation.command_stack + sizeof explanation.command_stack,
                                    become_command, &explanation);
    close_from(0);
    int status = kNotStarted << 8;
    if (child > 0) {
        (void)raw_call(SYS_wait4, child, reinterpret_cast<long>(&status));
    }
    return (status & 0x7f) != 0 ? kNotStarted : (status >> 8) & 0xff;
}

bool start(Explanation& explanation, const char* when) {
    if (!prepare(explanation, when)) {
        return false;
    }
    const uint64_t all = ~uint64_t{0};
    uint64_t before = 0;
    (void)syscall(SYS_rt_sigprocmask, SIG_SETMASK, &all, &before, sizeof all);
    const long keeper =
        cudiag_clone(CLONE_VM, explanation.keeper_stack + sizeof explanation.keeper_stack,
                     keep_command, &explanation);
    (void)syscall(SYS_rt_sigprocmask, SIG_SETMASK, &before, nullptr, sizeof before);
    explanation.keeper = keeper > 0 ? static_cast<int32_t>(keeper) : 0;
    return keeper > 0;
}

// True once the keeper has ended; its status then.
bool ended(Explanation& explanation, int* status) {
    if (explanation.keeper <= 0 ||
        syscall(SYS_wait4, explanation.keeper, status, WNOHANG | __WALL, nullptr) == 0) {
        return false;
    }
    explanation.keeper = 0;
    return true;
}

uint64_t monotonic_ms() {
    struct timespec now {};

    (void)syscall(SYS_clock_gettime, CLOCK_MONOTONIC, &now);
    return static_cast<uint64_t>(now.tv_sec) * 1000 + static_cast<uint64_t>(now.tv_nsec) / 1000000;
}

// Does standard error of this process lead where that of the root does? Then nobody parses it who
// does not see the root's words too.
bool shares_stderr_with_root() {
    char path[64];
    char own[512];
    char of_root[512];
    Text{path, sizeof path}
        .add("/proc/")
        .add(static_cast<uint64_t>(identity().root_pid))
        .add("/fd/2");
    const long own_length = readlink("/proc/self/fd/2", own, sizeof own);
    const long root_length = readlink(path, of_root, sizeof of_root);
    return own_length > 0 && own_length == root_length &&
           memcmp(own, of_root, static_cast<size_t>(own_length)) == 0;
}

bool speaks_for_run() {
    return is_root() || shares_stderr_with_root();
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
    if (!start(late, "exit")) {
        tell_where();
        return;
    }
    constexpr uint64_t kLongest = 10000;
    constexpr long kStep = 2'000'000;  // ns
    const uint64_t begin = monotonic_ms();
    int status = 0;
    bool is_over = ended(late, &status);
    while (!is_over && monotonic_ms() - begin < kLongest) {
        const struct timespec pause = {0, kStep};
        (void)syscall(SYS_nanosleep, &pause, nullptr);
        is_over = ended(late, &status);
    }
    if (is_over && (!WIFEXITED(status) || WEXITSTATUS(status) == kNotStarted)) {
        tell_where();
    }
}

void explain_early() {
    const KeepErrno keep;
    if (is_root() && !__atomic_exchange_n(&early_started, true, __ATOMIC_ACQ_REL)) {
        explain_while_it_runs("early");
    }
}

void explain_while_it_runs(const char* when) {
    const KeepErrno keep;
    if (printing() == Printing::off || !speaks_for_run() ||
        __atomic_exchange_n(&starting, true, __ATOMIC_ACQ_REL)) {
        return;
    }
    reap_explanation();
    if (early.keeper <= 0) {
        (void)start(early, when);
    }
    __atomic_store_n(&starting, false, __ATOMIC_RELEASE);
}

void reap_explanation() {
    const KeepErrno keep;
    int status = 0;
    (void)ended(early, &status);
}

void forget_explanation() {
    early.keeper = late.keeper = 0;
    early_started = false;
}

}  // namespace cudiag
