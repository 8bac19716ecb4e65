// The ends that run no atexit handler. That they do not return is said by libc's own declarations;
// [[noreturn]] may stand on the first declaration only.
#include <signal.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "shim/exports.h"
#include "shim/lifecycle.h"
#include "shim/native_exception.h"
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

CUDIAG_EXPORT void _exit(int status) {
    cudiag::finish(cudiag::EndHow::exit_now, status & 0xff);
    if (const auto real = cudiag::originals()._exit) {
        real(status);
    }
    leave(status);
}

// NOLINTNEXTLINE(bugprone-reserved-identifier,readability-identifier-naming): C's own name for it
CUDIAG_EXPORT void _Exit(int status) {
    cudiag::finish(cudiag::EndHow::exit_now, status & 0xff);
    if (const auto real = cudiag::originals()._Exit) {
        real(status);
    }
    leave(status);
}

CUDIAG_EXPORT void quick_exit(int status) {
    cudiag::finish(cudiag::EndHow::quick_exit, status & 0xff);
    if (const auto real = cudiag::originals().quick_exit) {
        real(status);
    }
    leave(status);
}

CUDIAG_EXPORT void abort() {
    cudiag::note_native_exception(reinterpret_cast<uintptr_t>(__builtin_return_address(0)));
    cudiag::finish(cudiag::EndHow::abort, SIGABRT);
    if (const auto real = cudiag::originals().abort) {
        real();
    }
    leave(127);
}
}
