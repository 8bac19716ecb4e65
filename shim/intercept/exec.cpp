// exec: the image is replaced, and the new one has a recording of its own if it has anything to
// say. Often called in a vfork child, which shares its parent's memory: there only the attempt is
// noted, for the parent.
#include <errno.h>
#include <spawn.h>
#include <stdint.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "record/keep_errno.h"
#include "shim/attempts.h"
#include "shim/exports.h"
#include "shim/lifecycle.h"
#include "shim/originals.h"
#include "shim/session.h"

namespace cudiag {
namespace {

// exec may fail and the program go on: a file that can be run will nearly always run. A name that
// is searched for in PATH is not looked for here.
void before_exec(const char* file) {
    const KeepErrno keep;
    if (session_state() == SessionState::open) {
        note_exec(file != nullptr && strchr(file, '/') != nullptr && access(file, X_OK) == 0);
    }
}

int32_t own_pid() {
    return static_cast<int32_t>(syscall(SYS_getpid));
}

// Runs the real function between the notes. On success it does not come back.
template <class Function, class... Environment>
int replace_image(Function real, const char* file, char* const* arguments,
                  Environment... environment) {
    before_exec(file);
    if (real == nullptr) {
        errno = ENOSYS;
        return -1;
    }
    const bool noted = session_state() != SessionState::off && file != nullptr;
    if (noted) {
        note_attempt(file, arguments, own_pid());
    }
    const int result = real(file, arguments, environment...);
    if (noted) {
        const KeepErrno keep;
        note_failed_attempt(file, own_pid(), errno);
    }
    return result;
}

// posix_spawn tries the exec in a child that shares nothing with us but the outcome.
template <class Function>
int spawn_by(Function real, int* child, const char* file, const void* actions,
             const void* attributes, char* const* arguments, char* const* environment) {
    if (real == nullptr) {
        return ENOSYS;
    }
    int started = 0;
    const int error = real(&started, file, actions, attributes, arguments, environment);
    const KeepErrno keep;
    if (child != nullptr && error == 0) {
        *child = started;
    }
    if (session_state() != SessionState::off && file != nullptr) {
        note_attempt(file, arguments, error == 0 ? started : kNoChild);
        if (error != 0) {
            note_failed_attempt(file, kNoChild, error);
        }
    }
    return error;
}

int not_there() {
    errno = ENOSYS;
    return -1;
}

void* or_error(void* real) {
    return real != nullptr ? real : reinterpret_cast<void*>(&not_there);
}

}  // namespace
}  // namespace cudiag

extern "C" {

CUDIAG_EXPORT int execve(const char* file, char* const argv[], char* const envp[]) {
    return cudiag::replace_image(cudiag::originals().execve, file, argv, envp);
}

CUDIAG_EXPORT int execv(const char* file, char* const argv[]) {
    return cudiag::replace_image(cudiag::originals().execv, file, argv);
}

CUDIAG_EXPORT int execvp(const char* file, char* const argv[]) {
    return cudiag::replace_image(cudiag::originals().execvp, file, argv);
}

CUDIAG_EXPORT int execvpe(const char* file, char* const argv[], char* const envp[]) {
    return cudiag::replace_image(cudiag::originals().execvpe, file, argv, envp);
}

CUDIAG_EXPORT int posix_spawn(pid_t* child, const char* file,
                              const posix_spawn_file_actions_t* actions,
                              const posix_spawnattr_t* attributes, char* const argv[],
                              char* const envp[]) {
    return cudiag::spawn_by(cudiag::originals().posix_spawn, child, file, actions, attributes, argv,
                            envp);
}

CUDIAG_EXPORT int posix_spawnp(pid_t* child, const char* file,
                               const posix_spawn_file_actions_t* actions,
                               const posix_spawnattr_t* attributes, char* const argv[],
                               char* const envp[]) {
    return cudiag::spawn_by(cudiag::originals().posix_spawnp, child, file, actions, attributes,
                            argv, envp);
}

// Called by the entries in dl.S, which jump to what these return.
#define CUDIAG_EXEC(name)                                                           \
    void* cudiag_enter_##name(const char* file) {                                   \
        cudiag::before_exec(file);                                                  \
        return cudiag::or_error(reinterpret_cast<void*>(cudiag::originals().name)); \
    }
CUDIAG_EXEC(execl)
CUDIAG_EXEC(execlp)
CUDIAG_EXEC(execle)
#undef CUDIAG_EXEC

void* cudiag_enter_fexecve(int /*file*/) {
    cudiag::before_exec(nullptr);
    return cudiag::or_error(reinterpret_cast<void*>(cudiag::originals().fexecve));
}
}
