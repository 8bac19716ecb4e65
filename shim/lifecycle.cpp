// Begin and end of the shim in a process. Begin: the constructor, after those of the libraries that
// the program needs (hooks that run before it work: originals are found on first use). End:
// on_exit's handler, which runs last and knows the status, or the entries of intercept/exit.cpp;
// none of them when a signal or a raw system call ends the process.
#include "shim/lifecycle.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "shim/explain.h"
#include "shim/guard.h"
#include "shim/modules.h"
#include "shim/originals.h"
#include "shim/session.h"
#include "shim/start_environment.h"

extern "C" {
extern char** environ;
// Absent from musl, where the destructor below has to do.
int on_exit(void (*function)(int, void*), void* argument) __attribute__((weak));
}

namespace cudiag {
namespace {

bool finished = false;

bool run_directory_exists() {
    return access(run_directory(), F_OK) == 0;
}

void at_exit(int status, void* /*argument*/) {
    finish(EndHow::exit, status & 0xff);
}

__attribute__((constructor)) void begin() {
    const KeepErrno keep;
    remember_environment(environ);
    read_settings();
    if (session_state() == SessionState::off) {
        return;
    }
    (void)originals();
    if (on_exit != nullptr) {
        (void)on_exit(at_exit, nullptr);
    }
}

}  // namespace

void finish(EndHow how, int status) {
    const KeepErrno keep;
    SessionState state = session_state();
    if (state == SessionState::off || in_vfork_child()) {
        return;
    }
    const bool failed = how == EndHow::abort || status != 0;
    // The libraries of a program that failed with CUDA in it are worth telling, whatever it failed
    // of.
    if (failed && state == SessionState::idle && has_cuda_library() && open_session()) {
        (void)note_modules();
    } else if (failed && state == SessionState::open) {
        (void)note_modules();
    }
    state = session_state();
    mark_end(how, status);
    if (!failed && !breakage_noted()) {
        if (state == SessionState::open) {
            discard_session();
        }
        return;
    }
    if (printing() == Printing::off || __atomic_exchange_n(&finished, true, __ATOMIC_ACQ_REL)) {
        return;
    }
    // Asked last: it walks /proc, and most processes that end with a status other than 0 have
    // recorded nothing. Their children may have: then the run's directory is there.
    if (is_root() && run_directory_exists()) {
        explain_at_exit();
    }
}

}  // namespace cudiag
