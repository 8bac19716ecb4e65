// exec: the image is replaced, and the new one has a recording of its own if it has anything to
// say. Often called in a vfork child, which shares its parent's memory: nothing is done there.
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "shim/guard.h"
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
// Called by the entries in dl.S, which jump to what these return.
#define CUDIAG_EXEC(name)                                                           \
    void* cudiag_enter_##name(const char* file) {                                   \
        cudiag::before_exec(file);                                                  \
        return cudiag::or_error(reinterpret_cast<void*>(cudiag::originals().name)); \
    }
CUDIAG_EXEC(execve)
CUDIAG_EXEC(execv)
CUDIAG_EXEC(execvp)
CUDIAG_EXEC(execvpe)
CUDIAG_EXEC(execl)
CUDIAG_EXEC(execlp)
CUDIAG_EXEC(execle)
#undef CUDIAG_EXEC

void* cudiag_enter_fexecve(int /*file*/) {
    cudiag::before_exec(nullptr);
    return cudiag::or_error(reinterpret_cast<void*>(cudiag::originals().fexecve));
}
}
