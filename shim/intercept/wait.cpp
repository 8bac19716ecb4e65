// wait: only the parent learns by which signal a child died.
#include <errno.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include "shim/attempts.h"
#include "shim/exports.h"
#include "shim/lifecycle.h"
#include "shim/originals.h"
#include "shim/session.h"

namespace cudiag {
namespace {

void after_wait(int child, int status) {
    if (child <= 0 || status == 0 || WIFSTOPPED(status) || WIFCONTINUED(status) ||
        session_state() == SessionState::off) {
        return;
    }
    note_failed_child(child, status);
    if (WIFSIGNALED(status)) {
        note_death(child, status);
    }
}

int no_such_call() {
    errno = ENOSYS;
    return -1;
}

}  // namespace
}  // namespace cudiag

extern "C" {

CUDIAG_EXPORT pid_t wait(int* status) {
    const auto real = cudiag::originals().wait;
    int own = 0;
    const pid_t child =
        real == nullptr ? cudiag::no_such_call() : real(status == nullptr ? &own : status);
    cudiag::after_wait(child, child > 0 && status != nullptr ? *status : own);
    return child;
}

CUDIAG_EXPORT pid_t waitpid(pid_t pid, int* status, int options) {
    const auto real = cudiag::originals().waitpid;
    int own = 0;
    const pid_t child = real == nullptr ? cudiag::no_such_call()
                                        : real(pid, status == nullptr ? &own : status, options);
    cudiag::after_wait(child, child > 0 && status != nullptr ? *status : own);
    return child;
}

CUDIAG_EXPORT pid_t wait3(int* status, int options, struct rusage* usage) {
    const auto real = cudiag::originals().wait3;
    int own = 0;
    const pid_t child = real == nullptr ? cudiag::no_such_call()
                                        : real(status == nullptr ? &own : status, options, usage);
    cudiag::after_wait(child, child > 0 && status != nullptr ? *status : own);
    return child;
}

CUDIAG_EXPORT pid_t wait4(pid_t pid, int* status, int options, struct rusage* usage) {
    const auto real = cudiag::originals().wait4;
    int own = 0;
    const pid_t child = real == nullptr
                            ? cudiag::no_such_call()
                            : real(pid, status == nullptr ? &own : status, options, usage);
    cudiag::after_wait(child, child > 0 && status != nullptr ? *status : own);
    return child;
}

CUDIAG_EXPORT int waitid(idtype_t type, id_t id, siginfo_t* info, int options) {
    const auto real = cudiag::originals().waitid;
    if (real == nullptr) {
        return cudiag::no_such_call();
    }
    const int result = real(static_cast<int>(type), id, info, options);
    // WNOWAIT leaves the child to be waited for again.
    if (result == 0 && (options & WNOWAIT) == 0 && info != nullptr && info->si_pid > 0 &&
        (info->si_code == CLD_KILLED || info->si_code == CLD_DUMPED ||
         info->si_code == CLD_EXITED)) {
        cudiag::after_wait(info->si_pid,
                           info->si_code == CLD_EXITED
                               ? (info->si_status & 0xff) << 8
                               : info->si_status | (info->si_code == CLD_DUMPED ? 0x80 : 0));
    }
    return result;
}
}
