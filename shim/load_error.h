// What a text of dlerror says, as far as the shim must know: whether it is about a load at all, and
// whether it is breakage or a probe. Pure functions of texts; glibc's words (elf/dl-*.c, dlfcn/*.c,
// 2.17 to 2.41), and as much of musl's as keeps a probe a probe there. Async-signal-safe.
#pragma once

#include <stddef.h>

namespace cudiag {

// A text "SUBJECT: reason". SUBJECT is the file that the loader was at, which need not be the one
// asked for.
struct LoadError {
    const char* subject;
    size_t subject_length;  // 0: the text names none
    const char* reason;
};

LoadError parse_load_error(const char* text);

// A symbol was not found: by a lookup, or while a library was being loaded.
bool is_about_symbol(const LoadError& error);

// The text of a dlclose, dlinfo or dlsym that was used wrongly: no library failed to load.
bool is_about_another_call(const LoadError& error);

// Is the file called like a module that only Python opens?
bool is_python_module(const char* asked);

// Breakage, not a probe: what was asked for is there, and something that it needs is not, or it is
// no good itself. Everybody probes for the driver, and for libfoo.so, which may be ld's script:
// `is_linker_script` says whether the file asked for is one.
bool is_breakage(const char* asked, const LoadError& error, bool is_linker_script);

}  // namespace cudiag
