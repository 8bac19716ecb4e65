// open and fopen, as far as compilers, linkers and CPython call them (nm -D): a build tool's are
// kept in memory for the case that it fails; of all other programs two names matter, a lock that is
// held and a build.ninja.
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <string.h>

#include "shim/build.h"
#include "shim/exports.h"
#include "shim/opens.h"
#include "shim/originals.h"
#include "shim/profile.h"
#include "shim/step_hooks.h"

namespace cudiag {
namespace {

bool is_build_file(const char* path) {
    constexpr char kName[] = "build.ninja";
    constexpr size_t kLength = sizeof kName - 1;
    const size_t length = strlen(path);
    return length >= kLength && memcmp(path + length - kLength, kName, kLength) == 0 &&
           (length == kLength || path[length - kLength - 1] == '/');
}

void after_open(const char* path, bool opened, bool exclusive) {
    if (path == nullptr) {
        return;
    }
    if (opens_are_watched()) {
        note_open(path, opened);
    } else if (!opened) {
        if (exclusive && errno == EEXIST) {
            note_lock(path);
        }
    } else if (is_build_file(path) && !is_step()) {
        note_build_file(path);
    } else if (__builtin_expect(profile_is_wanted(), 0)) {
        note_open_for_step_hooks(path);
    }
}

template <class Function>
int open_by(Function real, const char* path, int flags, mode_t mode) {
    if (real == nullptr) {
        errno = ENOSYS;
        return -1;
    }
    const int file = real(path, flags, mode);
    after_open(path, file >= 0, (flags & (O_CREAT | O_EXCL)) == (O_CREAT | O_EXCL));
    return file;
}

template <class Function>
void* fopen_by(Function real, const char* path, const char* mode) {
    if (real == nullptr) {
        errno = ENOSYS;
        return nullptr;
    }
    void* file = real(path, mode);
    after_open(path, file != nullptr, false);
    return file;
}

// open takes a mode only with flags that may make a file (open(2)).
bool takes_mode(int flags) {
    return (flags & O_CREAT) != 0 || (flags & O_TMPFILE) == O_TMPFILE;
}

}  // namespace
}  // namespace cudiag

extern "C" {

CUDIAG_EXPORT int open(const char* path, int flags, ...) {
    mode_t mode = 0;
    if (cudiag::takes_mode(flags)) {
        va_list arguments;
        va_start(arguments, flags);
        mode = va_arg(arguments, mode_t);
        va_end(arguments);
    }
    return cudiag::open_by(cudiag::originals().open, path, flags, mode);
}

CUDIAG_EXPORT int open64(const char* path, int flags, ...) {
    mode_t mode = 0;
    if (cudiag::takes_mode(flags)) {
        va_list arguments;
        va_start(arguments, flags);
        mode = va_arg(arguments, mode_t);
        va_end(arguments);
    }
    return cudiag::open_by(cudiag::originals().open64, path, flags, mode);
}

// FILE is not looked into; <stdio.h> is not included, whose declarations differ with the feature
// macros.
CUDIAG_EXPORT void* fopen(const char* path, const char* mode) {
    return cudiag::fopen_by(cudiag::originals().fopen, path, mode);
}

CUDIAG_EXPORT void* fopen64(const char* path, const char* mode) {
    return cudiag::fopen_by(cudiag::originals().fopen64, path, mode);
}
}
