// exec: the image is replaced, and the new one has a recording of its own if it has anything to
// say. Often called in a vfork child, which shares its parent's memory: nothing is done there.
#include <errno.h>
#include <stdint.h>

#include "shim/guard.h"
#include "shim/originals.h"
#include "shim/session.h"

namespace cudiag {
namespace {

// exec may fail and the program go on; so a recording with something in it is only marked, and one
// of probes is dropped.
void before_exec() {
    const KeepErrno keep;
    if (in_vfork_child() || session_state() != SessionState::open) {
        return;
    }
    if (breakage_noted()) {
        mark_end(EndHow::exec, 0);
    } else {
        discard_session();
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
    void* cudiag_enter_##name() {                                                   \
        cudiag::before_exec();                                                      \
        return cudiag::or_error(reinterpret_cast<void*>(cudiag::originals().name)); \
    }
CUDIAG_EXEC(execve)
CUDIAG_EXEC(execv)
CUDIAG_EXEC(execvp)
CUDIAG_EXEC(execvpe)
CUDIAG_EXEC(execl)
CUDIAG_EXEC(execlp)
CUDIAG_EXEC(execle)
CUDIAG_EXEC(fexecve)
#undef CUDIAG_EXEC
}
