// The ends that run no atexit handler.
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "shim/exports.h"
#include "shim/lifecycle.h"
#include "shim/originals.h"

namespace {

// Should no loaded object have the function, the system call still ends the process as it would
// have.
[[noreturn]] void leave(int status) {
    for (;;) {
        (void)syscall(SYS_exit_group, status);
    }
}

}  // namespace

extern "C" {

CUDIAG_EXPORT [[noreturn]] void _exit(int status) {
    cudiag::finish(cudiag::EndHow::exit_now, status & 0xff);
    if (const auto real = cudiag::originals()._exit) {
        real(status);
    }
    leave(status);
}

CUDIAG_EXPORT [[noreturn]] void _Exit(int status) {
    cudiag::finish(cudiag::EndHow::exit_now, status & 0xff);
    if (const auto real = cudiag::originals()._Exit) {
        real(status);
    }
    leave(status);
}

CUDIAG_EXPORT [[noreturn]] void quick_exit(int status) {
    cudiag::finish(cudiag::EndHow::quick_exit, status & 0xff);
    if (const auto real = cudiag::originals().quick_exit) {
        real(status);
    }
    leave(status);
}

CUDIAG_EXPORT [[noreturn]] void abort() {
    cudiag::finish(cudiag::EndHow::abort, SIGABRT);
    if (const auto real = cudiag::originals().abort) {
        real();
    }
    leave(127);
}
}
