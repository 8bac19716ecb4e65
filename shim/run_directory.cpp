#include "shim/run_directory.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "record/keep_errno.h"
#include "shim/start_environment.h"
#include "shim/text.h"

namespace cudiag {
namespace {

constexpr size_t kPath = 4096;

ProcessIdentity who;
char directory[kPath];
size_t ours = 0;  // where in `directory` the part begins that only we may have made
bool known = false;

bool is_own(int opened) {
    struct stat status {};

    // The wrapper fstat is GLIBC_2.33; the system call fills the same struct on x86-64 and aarch64.
    if (syscall(SYS_fstat, opened, &status) != 0) {
        return false;
    }
    if (status.st_uid != geteuid() || (status.st_mode & 022) != 0) {
        errno = EACCES;
        return false;
    }
    return true;
}

// One component, never through a link.
int open_own(int at, const char* name) {
    const int opened = openat(at, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (opened >= 0 && !is_own(opened)) {
        (void)close(opened);
        errno = EACCES;
        return -1;
    }
    return opened;
}

bool make_parents(char* path) {
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

// Walks down from the directory before `ours`.
int walk(bool make) {
    static char path[kPath];  // one thread opens or discards at a time
    Text text{path, sizeof path};
    text.add(directory);
    path[ours - 1] = '\0';
    if (make && !make_parents(path)) {
        return -1;
    }
    int at = openat(AT_FDCWD, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    char* name = path + ours;
    while (at >= 0 && name != nullptr) {
        char* slash = strchr(name, '/');
        if (slash != nullptr) {
            *slash = '\0';
        }
        if (make && mkdirat(at, name, 0700) != 0 && errno != EEXIST) {
            const int error = errno;
            (void)close(at);
            errno = error;
            return -1;
        }
        const int next = open_own(at, name);
        const int error = errno;
        (void)close(at);
        errno = error;
        at = next;
        name = slash == nullptr ? nullptr : slash + 1;
    }
    return at;
}

// Is it writable, or could it be made? A home may be read-only, or (Debian's /nonexistent) not be
// there for ever.
bool can_be_had(const char* path) {
    char at[1024];
    if (Text{at, sizeof at}.add(path).cut()) {
        return false;
    }
    for (;;) {
        if (access(at, W_OK | X_OK) == 0) {
            return true;
        }
        char* slash = strrchr(at, '/');
        if (errno != ENOENT || slash == nullptr || slash == at) {
            return false;
        }
        *slash = '\0';
    }
}

void find() {
    if (known) {
        return;
    }
    who = identify_process();
    char boot[64];
    if (read_file("/proc/sys/kernel/random/boot_id", boot, sizeof boot) < 8) {
        memcpy(boot, "00000000", 9);
    }
    boot[8] = '\0';
    Text text{directory, sizeof directory};
    const char* given = start_variable("CUDIAG_DIR");
    const char* state_home = start_variable("XDG_STATE_HOME");
    const char* home = start_variable("HOME");
    size_t private_from = 0;
    const bool chosen = given != nullptr && *given != '\0';
    if (chosen) {
        if (*given != '/') {
            // Relative to where the process is now: nearly always where it was started.
            char here[1024];
            const long length = syscall(SYS_getcwd, here, sizeof here);
            text.add(length > 0 && here[0] == '/' ? here : "").add("/");
        }
        text.add(given);
    } else {
        if (state_home != nullptr && *state_home == '/') {
            text.add(state_home).add("/cudiag/runs");
        } else if (home != nullptr && *home == '/') {
            text.add(home).add("/.local/state/cudiag/runs");
        }
    }
    if (text.length() == 0 || (!chosen && !can_be_had(directory))) {
        text = Text{directory, sizeof directory};
        text.add("/tmp/");
        private_from = text.length();
        text.add("cudiag-").add(static_cast<uint64_t>(getuid())).add("/runs");
    }
    text.add("/");
    ours = private_from != 0 ? private_from : text.length();
    text.add(boot)
        .add("-")
        .add(who.root_start_ticks)
        .add("-")
        .add(static_cast<uint64_t>(who.root_pid));
    known = true;
}

}  // namespace

const ProcessIdentity& identity() {
    const KeepErrno keep;
    find();
    return who;
}

const char* run_directory() {
    const KeepErrno keep;
    find();
    return directory;
}

int make_run_directory() {
    find();
    return walk(true);
}

int open_run_directory() {
    find();
    return walk(false);
}

int make_own_directory(const char* parent, const char* name) {
    const int at = openat(AT_FDCWD, parent, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (at < 0) {
        return -1;
    }
    (void)mkdirat(at, name, 0700);
    const int opened = open_own(at, name);
    const int error = errno;
    (void)close(at);
    errno = error;
    return opened;
}

void forget_run_directory() {
    known = false;
}

}  // namespace cudiag
