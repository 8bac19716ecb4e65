// wait: only the parent learns by which signal a child died. Noted when the child had something
// recorded, or this process has.
#include <errno.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "shim/exports.h"
#include "shim/guard.h"
#include "shim/originals.h"
#include "shim/session.h"

namespace cudiag {
namespace {

void note_death(long child, int status) {
    const KeepErrno keep;
    if (child <= 0 || !WIFSIGNALED(status) || in_vfork_child() ||
        session_state() == SessionState::off) {
        return;
    }
    const bool worth_it = session_state() == SessionState::open ||
                          (session_state() == SessionState::idle &&
                           access(run_directory(), F_OK) == 0 && open_session());
    if (worth_it) {
        const FieldValue fields[] = {
            FieldValue::of(Field::pid, static_cast<uint64_t>(child)),
            FieldValue::of(Field::status, static_cast<uint64_t>(static_cast<unsigned>(status)))};
        (void)note(EntryKind::child_ended, fields, 2);
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
    cudiag::note_death(child, status == nullptr ? own : *status);
    return child;
}

CUDIAG_EXPORT pid_t waitpid(pid_t pid, int* status, int options) {
    const auto real = cudiag::originals().waitpid;
    int own = 0;
    const pid_t child = real == nullptr ? cudiag::no_such_call()
                                        : real(pid, status == nullptr ? &own : status, options);
    if (child > 0) {
        cudiag::note_death(child, status == nullptr ? own : *status);
    }
    return child;
}

CUDIAG_EXPORT pid_t wait3(int* status, int options, struct rusage* usage) {
    const auto real = cudiag::originals().wait3;
    int own = 0;
    const pid_t child = real == nullptr ? cudiag::no_such_call()
                                        : real(status == nullptr ? &own : status, options, usage);
    if (child > 0) {
        cudiag::note_death(child, status == nullptr ? own : *status);
    }
    return child;
}

CUDIAG_EXPORT pid_t wait4(pid_t pid, int* status, int options, struct rusage* usage) {
    const auto real = cudiag::originals().wait4;
    int own = 0;
    const pid_t child = real == nullptr
                            ? cudiag::no_such_call()
                            : real(pid, status == nullptr ? &own : status, options, usage);
    if (child > 0) {
        cudiag::note_death(child, status == nullptr ? own : *status);
    }
    return child;
}

CUDIAG_EXPORT int waitid(idtype_t type, id_t id, siginfo_t* info, int options) {
    const auto real = cudiag::originals().waitid;
    if (real == nullptr) {
        return cudiag::no_such_call();
    }
    const int result = real(static_cast<int>(type), id, info, options);
    if (result == 0 && info != nullptr && info->si_pid > 0 &&
        (info->si_code == CLD_KILLED || info->si_code == CLD_DUMPED)) {
        cudiag::note_death(info->si_pid,
                           info->si_status | (info->si_code == CLD_DUMPED ? 0x80 : 0));
    }
    return result;
}
}
