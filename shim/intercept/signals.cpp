// sigaction: CPython puts SIGINT back to its default while it finalizes, when the exception that
// ended the program is still in sys.last_exc: the one moment at which a preload can read it.
// Handlers of the program are neither read nor replaced.
#include <errno.h>
#include <signal.h>

#include "shim/exports.h"
#include "shim/lifecycle.h"
#include "shim/originals.h"

extern "C" CUDIAG_EXPORT int sigaction(int signal, const struct sigaction* action,
                                       struct sigaction* before) {
    if (signal == SIGINT && action != nullptr && action->sa_handler == SIG_DFL) {
        cudiag::note_exception_at_end();
    }
    const auto real = cudiag::originals().sigaction;
    if (real == nullptr) {
        errno = ENOSYS;
        return -1;
    }
    return real(signal, action, before);
}
