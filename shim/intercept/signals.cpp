// sigaction: CPython puts SIGINT back to its default while it finalizes, when the exception that
// ended the program is still in sys.last_exc: the one moment at which a preload can read it.
// Handlers of the program are neither read nor replaced.
#include <errno.h>
#include <signal.h>

#include "shim/exports.h"
#include "shim/forks.h"
#include "shim/guard.h"
#include "shim/originals.h"
#include "shim/python.h"
#include "shim/session.h"

extern "C" CUDIAG_EXPORT int sigaction(int signal, const struct sigaction* action,
                                       struct sigaction* before) {
    if (signal == SIGINT && action != nullptr && action->sa_handler == SIG_DFL) {
        const cudiag::KeepErrno keep;
        if (cudiag::session_state() == cudiag::SessionState::open && !cudiag::in_vfork_child()) {
            cudiag::note_last_exception();
        }
    }
    const auto real = cudiag::originals().sigaction;
    if (real == nullptr) {
        errno = ENOSYS;
        return -1;
    }
    return real(signal, action, before);
}
