#include "shim/process_identity.h"

#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "shim/text.h"

namespace cudiag {
namespace {

// Programs whose own failure nobody asks about: they start another one and wait, or become it.
constexpr const char* kLaunchers[] = {"sh",
                                      "bash",
                                      "dash",
                                      "zsh",
                                      "ksh",
                                      "mksh",
                                      "fish",
                                      "tcsh",
                                      "csh",
                                      "busybox",
                                      "env",
                                      "sudo",
                                      "doas",
                                      "su",
                                      "runuser",
                                      "setpriv",
                                      "chroot",
                                      "unshare",
                                      "nsenter",
                                      "timeout",
                                      "nohup",
                                      "nice",
                                      "ionice",
                                      "chrt",
                                      "taskset",
                                      "setsid",
                                      "stdbuf",
                                      "numactl",
                                      "xargs",
                                      "time",
                                      "script",
                                      "flock",
                                      "srun",
                                      "mpirun",
                                      "mpiexec",
                                      "orterun",
                                      "tini",
                                      "dumb-init",
                                      "catatonit",
                                      "s6-supervise",
                                      "start-stop-daemon",
                                      "systemd-run",
                                      "qemu-aarch64",
                                      "strace",
                                      "ltrace",
                                      "perf",
                                      "gdb",
                                      "ld-linux-x86-64.so.2",
                                      "ld-linux-aarch64.so.1"};

// Not strtoull: built against glibc 2.38 or newer it would bind to a symbol that older systems
// lack.
uint64_t number_at(const char* text) {
    uint64_t number = 0;
    for (; *text >= '0' && *text <= '9'; ++text) {
        number = number * 10 + static_cast<uint64_t>(*text - '0');
    }
    return number;
}

struct Stat {
    char command[64];
    int32_t ppid;
    uint64_t start_ticks;
};

// /proc/PID/stat: pid (comm) state ppid … starttime is field 22; comm may hold anything, so count
// from the last ')'.
bool read_stat(int32_t pid, Stat* stat) {
    char path[48];
    Text text{path, sizeof path};
    text.add("/proc/").add(static_cast<uint64_t>(pid)).add("/stat");
    char line[1024];
    if (read_file(path, line, sizeof line) <= 0) {
        return false;
    }
    const char* open = strchr(line, '(');
    char* close = strrchr(line, ')');
    if (open == nullptr || close == nullptr || close < open) {
        return false;
    }
    const size_t length = static_cast<size_t>(close - open - 1);
    const size_t kept = length < sizeof stat->command - 1 ? length : sizeof stat->command - 1;
    memcpy(stat->command, open + 1, kept);
    stat->command[kept] = '\0';
    const char* at = close + 1;
    for (int field = 3; field <= 22; ++field) {
        while (*at == ' ') {
            ++at;
        }
        if (*at == '\0') {
            return false;
        }
        if (field == 4) {
            stat->ppid = static_cast<int32_t>(number_at(at));
        } else if (field == 22) {
            stat->start_ticks = number_at(at);
        }
        while (*at != ' ' && *at != '\0') {
            ++at;
        }
    }
    return true;
}

// Is the shim mapped there? Not asked of the environment: a static or privileged program runs
// without the shim in spite of LD_PRELOAD, and one that sets its title (setproctitle) has
// overwritten its environment. A process with 2000 mappings takes some 2 ms.
bool runs_under_shim(int32_t pid) {
    char path[48];
    Text text{path, sizeof path};
    text.add("/proc/").add(static_cast<uint64_t>(pid)).add("/maps");
    return file_holds(path, "/libcudiag.so");
}

// Base name of its executable; comm, which is cut at 15 bytes and still tells a shell, where that
// cannot be read.
const char* program_of(int32_t pid, const char* command, char* buffer, size_t size) {
    char path[48];
    Text text{path, sizeof path};
    text.add("/proc/").add(static_cast<uint64_t>(pid)).add("/exe");
    const long length = readlink(path, buffer, size - 1);
    if (length <= 0) {
        return command;
    }
    buffer[length] = '\0';
    const char* slash = strrchr(buffer, '/');
    return slash == nullptr ? buffer : slash + 1;
}

// Does the shell run a script, not what was typed or given with -c? By /proc/PID/cmdline: the first
// argument that is no option.
bool runs_script(int32_t pid) {
    char path[48];
    Text text{path, sizeof path};
    text.add("/proc/").add(static_cast<uint64_t>(pid)).add("/cmdline");
    char arguments[1024];
    const long length = read_file(path, arguments, sizeof arguments);
    if (length <= 0) {
        return false;
    }
    for (const char* at = arguments + strlen(arguments) + 1; at < arguments + length;
         at += strlen(at) + 1) {
        if (*at != '-' && *at != '+') {
            return true;
        }
        const bool long_option = at[1] == '-';
        if (!long_option && strchr(at, 'c') != nullptr) {
            return false;
        }
        if (!long_option && (strchr(at, 'o') != nullptr || strchr(at, 'O') != nullptr)) {
            at += strlen(at) + 1;  // "-o pipefail"
            if (at >= arguments + length) {
                return false;
            }
        }
    }
    return false;
}

}  // namespace

long read_file(const char* path, char* to, size_t size) {
    const int file = openat(AT_FDCWD, path, O_RDONLY | O_CLOEXEC);
    if (file < 0) {
        return -1;
    }
    size_t have = 0;
    while (have < size - 1) {
        const long got = read(file, to + have, size - 1 - have);
        if (got <= 0) {
            break;
        }
        have += static_cast<size_t>(got);
    }
    (void)close(file);
    to[have] = '\0';
    return static_cast<long>(have);
}

bool file_holds(const char* path, const char* pattern) {
    const size_t length = strlen(pattern);
    uint16_t back[1024];  // Knuth, Morris and Pratt: where to go on after a mismatch
    if (length == 0 || length >= sizeof back / sizeof back[0]) {
        return false;
    }
    back[0] = 0;
    for (size_t i = 1, k = 0; i < length; ++i) {
        while (k > 0 && pattern[i] != pattern[k]) {
            k = back[k - 1];
        }
        k += pattern[i] == pattern[k] ? 1 : 0;
        back[i] = static_cast<uint16_t>(k);
    }
    const int file = openat(AT_FDCWD, path, O_RDONLY | O_CLOEXEC);
    if (file < 0) {
        return false;
    }
    char buffer[1024];
    size_t matched = 0;
    for (long got = 1; got > 0 && matched < length;) {
        got = read(file, buffer, sizeof buffer);
        for (long i = 0; i < got && matched < length; ++i) {
            while (matched > 0 && buffer[i] != pattern[matched]) {
                matched = back[matched - 1];
            }
            matched += buffer[i] == pattern[matched] ? 1 : 0;
        }
    }
    (void)close(file);
    return matched == length;
}

bool is_launcher(const char* base_name) {
    for (const char* launcher : kLaunchers) {
        if (strcmp(base_name, launcher) == 0) {
            return true;
        }
    }
    return false;
}

ProcessIdentity identify_process() {
    ProcessIdentity identity{};
    Stat stat{};
    identity.pid = static_cast<int32_t>(getpid());
    if (!read_stat(identity.pid, &stat)) {
        identity.root_pid = identity.pid;
        return identity;
    }
    identity.ppid = stat.ppid;
    identity.start_ticks = stat.start_ticks;
    identity.root_pid = identity.pid;
    identity.root_start_ticks = stat.start_ticks;
    identity.parent_role = BuildRole::not_one;
    char exe[512];
    const char* own = own_program(exe, sizeof exe);
    BuildRole root_role = build_role(own);
    bool cuda_root = is_cuda_compiler(own);
    int32_t script = 0;
    uint64_t script_start_ticks = 0;
    // Generations are few; the bound is for a /proc that lies.
    int32_t ancestor = stat.ppid;
    for (int generation = 0; generation < 64 && ancestor > 1 && runs_under_shim(ancestor);
         ++generation) {
        if (!read_stat(ancestor, &stat)) {
            break;
        }
        const char* program = program_of(ancestor, stat.command, exe, sizeof exe);
        if (!is_launcher(program)) {
            identity.root_pid = ancestor;
            identity.root_start_ticks = stat.start_ticks;
            root_role = build_role(program);
            cuda_root = is_cuda_compiler(program);
            script = 0;
            if (identity.parent_pid == 0) {
                identity.parent_pid = ancestor;
                identity.parent_role = root_role;
            }
        } else if (is_shell(program) && runs_script(ancestor)) {
            script = ancestor;
            script_start_ticks = stat.start_ticks;
        }
        ancestor = stat.ppid;
    }
    if (script != 0 && root_role == BuildRole::step) {
        identity.root_pid = script;
        identity.root_start_ticks = script_start_ticks;
        root_role = BuildRole::not_one;
    }
    identity.below_host_compiler = root_role == BuildRole::step && !cuda_root;
    return identity;
}

}  // namespace cudiag
