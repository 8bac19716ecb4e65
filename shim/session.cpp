#include "shim/session.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "shim/guard.h"
#include "shim/modules.h"
#include "shim/process_identity.h"
#include "shim/start_environment.h"
#include "shim/text.h"

namespace cudiag {
namespace {

constexpr size_t kPath = 4096;
constexpr size_t kNames = 16;  // recordings of one pid in one run: exec keeps the pid
constexpr size_t kPage = 4096;

SessionState state = SessionState::idle;
Printing print = Printing::normal;
Writer writer;
ProcessIdentity identity;
char directory[kPath];  // of the run; "" until it is known
char record_name[48];
bool breakage = false;
bool known = false;  // identity and directory are
int32_t owner = 0;   // pid that opened the session
// A page that the kernel clears in a fork child (MADV_WIPEONFORK, Linux 4.14) and leaves alone in a
// vfork child, which shares it: [0] is 1 in the process that opened the session.
unsigned char* lives_here = nullptr;

int32_t own_pid() {
    return static_cast<int32_t>(syscall(SYS_getpid));
}

// 0700, ours, and no link in its last component: a shared /tmp is full of other people.
int open_own_directory(const char* path) {
    const int opened = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (opened < 0) {
        return -1;
    }

    struct stat status {};

    // The wrapper fstat is GLIBC_2.33; the system call fills the same struct on x86-64 and aarch64.
    if (syscall(SYS_fstat, opened, &status) != 0 || status.st_uid != geteuid()) {
        (void)close(opened);
        errno = EACCES;
        return -1;
    }
    return opened;
}

bool make_directories(char* path) {
    for (char* slash = strchr(path + 1, '/');; slash = strchr(slash + 1, '/')) {
        if (slash != nullptr) {
            *slash = '\0';
        }
        const bool made = mkdir(path, 0700) == 0 || errno == EEXIST;
        if (slash == nullptr) {
            return made;
        }
        *slash = '/';
        if (!made && errno != EACCES && errno != EROFS) {  // a parent may be unwritable and there
            return false;
        }
    }
}

void find_directory() {
    if (known) {
        return;
    }
    identity = identify_process();
    char boot[64];
    if (read_file("/proc/sys/kernel/random/boot_id", boot, sizeof boot) < 8) {
        memcpy(boot, "00000000", 9);
    }
    boot[8] = '\0';
    Text text{directory, sizeof directory};
    const char* given = start_variable("CUDIAG_DIR");
    const char* state_home = start_variable("XDG_STATE_HOME");
    const char* home = start_variable("HOME");
    if (given != nullptr && *given != '\0') {
        if (*given != '/') {
            // Relative to where the process was started, as far as it is known now.
            char here[kPath];
            const long length = syscall(SYS_getcwd, here, sizeof here);
            if (length > 0 && here[0] == '/') {
                text.add(here).add("/");
            }
        }
        text.add(given);
    } else if (state_home != nullptr && *state_home == '/') {
        text.add(state_home).add("/cudiag/runs");
    } else if (home != nullptr && *home == '/') {
        text.add(home).add("/.local/state/cudiag/runs");
    } else {
        text.add("/tmp/cudiag-").add(static_cast<uint64_t>(getuid())).add("/runs");
    }
    text.add("/")
        .add(boot)
        .add("-")
        .add(identity.root_start_ticks)
        .add("-")
        .add(static_cast<uint64_t>(identity.root_pid));
    known = true;
}

void add_fact(const char* name, size_t length, const char* value, void* /*context*/) {
    const FieldValue fields[] = {FieldValue::of(Field::name, name, length),
                                 FieldValue::of(Field::value, value)};
    (void)writer.append(EntryKind::variable, fields, 2);
}

void note_process() {
    static char arguments[16384];  // a longer command line is cut; it is for people to recognise
    static char exe[kPath];
    static char cwd[kPath];
    const long length = read_file("/proc/self/cmdline", arguments, sizeof arguments);
    const long exe_length = readlink("/proc/self/exe", exe, sizeof exe);
    const long cwd_length = readlink("/proc/self/cwd", cwd, sizeof cwd);
    constexpr size_t kMost = 258;
    FieldValue fields[kMost] = {
        FieldValue::of(Field::path, exe, exe_length > 0 ? static_cast<size_t>(exe_length) : 0),
        FieldValue::of(Field::working_directory, cwd,
                       cwd_length > 0 ? static_cast<size_t>(cwd_length) : 0)};
    size_t count = 2;
    for (long at = 0; at < length && count < kMost;) {
        const size_t size = strnlen(arguments + at, static_cast<size_t>(length - at));
        fields[count++] = FieldValue::of(Field::argument, arguments + at, size);
        at += static_cast<long>(size) + 1;
    }
    (void)writer.append(EntryKind::process, fields, count);
    for_each_recorded(add_fact, nullptr);
}

OpenResult open_file(int at, int* error) {
    OpenResult result = OpenResult::exists;
    const Identity who{identity.pid, identity.ppid, identity.root_pid, identity.start_ticks,
                       identity.root_start_ticks};
    for (size_t number = 0; number < kNames && result == OpenResult::exists; ++number) {
        Text name{record_name, sizeof record_name};
        name.add(static_cast<uint64_t>(identity.pid));
        if (number > 0) {
            name.add(".").add(number);
        }
        name.add(".rec");
        result = writer.open(at, record_name, Capacity{}, who, error);
    }
    return result;
}

void tell_failure(const char* what) {
    if (print == Printing::off || identity.root_pid != identity.pid) {
        return;
    }
    char line[kPath + 256];
    Text text{line, sizeof line};
    text.add("cudiag: cannot record in ").add(directory).add(": ").add(what).add("\n");
    (void)!write(2, line, text.length());
}

const char* reason(OpenResult result) {
    switch (result) {
        case OpenResult::no_space:
            return "no space left (needs 1 MiB)";
        case OpenResult::over_limit:
            return "the file size limit (ulimit -f) is below 1 MiB";
        case OpenResult::no_permission:
            return "no permission (CUDIAG_DIR names another directory)";
        case OpenResult::exists:
            return "too many recordings of this process";
        default:
            return "the file cannot be made";
    }
}

bool open_now() {
    find_directory();
    int error = 0;
    OpenResult result = OpenResult::no_permission;
    if (make_directories(directory)) {
        const int at = open_own_directory(directory);
        if (at >= 0) {
            result = open_file(at, &error);
            (void)close(at);
        }
    } else if (errno == ENOSPC) {
        result = OpenResult::no_space;
    }
    if (result != OpenResult::ok) {
        tell_failure(reason(result));
        return false;
    }
    void* page = mmap(nullptr, kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (page != MAP_FAILED && madvise(page, kPage, MADV_WIPEONFORK) == 0) {
        lives_here = static_cast<unsigned char*>(page);
        lives_here[0] = 1;
    }
    owner = identity.pid;
    note_process();
    return true;
}

// A fork child finds its parent's session in its memory: it starts afresh.
void leave_parents_session() {
    if (state != SessionState::open || own_pid() == owner || in_vfork_child()) {
        return;
    }
    writer.forget();
    forget_modules();
    known = false;
    breakage = false;
    lives_here = nullptr;
    __atomic_store_n(&state, SessionState::idle, __ATOMIC_RELEASE);
}

void remove_record() {
    const int at = open_own_directory(directory);
    if (at >= 0) {
        (void)unlinkat(at, record_name, 0);
        (void)close(at);
        (void)rmdir(directory);  // fails, rightly, while others have recordings there
    }
}

}  // namespace

void read_settings() {
    const char* setting = start_variable("CUDIAG");
    if (setting != nullptr && strcmp(setting, "off") == 0) {
        state = SessionState::off;
    }
    const char* printed = start_variable("CUDIAG_PRINT");
    if (printed != nullptr) {
        print = strcmp(printed, "off") == 0   ? Printing::off
                : strcmp(printed, "all") == 0 ? Printing::all
                                              : Printing::normal;
    }
}

SessionState session_state() {
    leave_parents_session();
    return __atomic_load_n(&state, __ATOMIC_ACQUIRE);
}

Printing printing() {
    return print;
}

bool open_session() {
    const KeepErrno keep;
    leave_parents_session();
    SessionState expected = SessionState::idle;
    if (__atomic_compare_exchange_n(&state, &expected, SessionState::opening, false,
                                    __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)) {
        const bool opened = open_now();
        __atomic_store_n(&state, opened ? SessionState::open : SessionState::given_up,
                         __ATOMIC_RELEASE);
        return opened;
    }
    // Another thread is at it: its work is bounded, and so is the wait. Losing an entry is better
    // than hanging the host.
    for (int turn = 0;
         turn < 10000 && __atomic_load_n(&state, __ATOMIC_ACQUIRE) == SessionState::opening;
         ++turn) {
        (void)sched_yield();
    }
    return __atomic_load_n(&state, __ATOMIC_ACQUIRE) == SessionState::open;
}

bool note(EntryKind kind, const FieldValue* fields, size_t count) {
    return session_state() == SessionState::open && writer.append(kind, fields, count);
}

void note_breakage() {
    __atomic_store_n(&breakage, true, __ATOMIC_RELEASE);
}

bool breakage_noted() {
    return __atomic_load_n(&breakage, __ATOMIC_ACQUIRE);
}

bool is_root() {
    const KeepErrno keep;
    find_directory();
    return identity.root_pid == identity.pid;
}

const char* run_directory() {
    const KeepErrno keep;
    find_directory();
    return directory;
}

bool in_vfork_child() {
    if (owner == 0 || own_pid() == owner) {
        return false;
    }
    // Without the page (old kernel) a fork child can't be told from a vfork child: leave the
    // parent's memory alone.
    return lives_here == nullptr || lives_here[0] == 1;
}

void discard_session() {
    const KeepErrno keep;
    if (session_state() == SessionState::open) {
        remove_record();
        writer.forget();
        breakage = false;
        forget_modules();
        __atomic_store_n(&state, SessionState::idle, __ATOMIC_RELEASE);
    }
}

void mark_end(EndHow how, int status) {
    if (session_state() == SessionState::open) {
        writer.mark_end(how, status);
    }
}

}  // namespace cudiag
