#include "shim/load_error.h"

#include <string.h>

#include <initializer_list>

namespace cudiag {
namespace {

struct Piece {
    const char* begin;
    size_t length;
};

bool begins_with(const Piece& text, const char* prefix) {
    const size_t size = strlen(prefix);
    return text.length >= size && memcmp(text.begin, prefix, size) == 0;
}

bool ends_with(const char* text, const char* end) {
    const size_t length = strlen(text);
    const size_t size = strlen(end);
    return length >= size && strcmp(text + length - size, end) == 0;
}

bool equal(const Piece& text, const char* other) {
    return text.length == strlen(other) && memcmp(text.begin, other, text.length) == 0;
}

Piece base_of(Piece path) {
    for (size_t i = path.length; i > 0; --i) {
        if (path.begin[i - 1] == '/') {
            return {path.begin + i, path.length - i};
        }
    }
    return path;
}

bool has_any(const char* text, const char* const* words, size_t count) {
    for (size_t i = 0; i < count; ++i) {
        if (strstr(text, words[i]) != nullptr) {
            return true;
        }
    }
    return false;
}

template <size_t kCount>
bool has_any(const char* text, const char* const (&words)[kCount]) {
    return has_any(text, words, kCount);
}

// dlclose, dlinfo and dlsym, used wrongly.
constexpr const char* kOtherCalls[] = {"shared object not open", "invalid handle",
                                       "RTLD_NEXT used in code", "RTLD_SELF used in code",
                                       "unsupported dlinfo",     "Symbol not found: "};
// dlopen and dlmopen, used wrongly: no library is to blame.
constexpr const char* kBadCalls[] = {"invalid mode for dlopen()", "invalid mode parameter",
                                     "invalid namespace", "invalid target namespace",
                                     "no more namespaces available"};

}  // namespace

LoadError parse_load_error(const char* text) {
    // musl: "Error loading shared library FILE: reason", "Error relocating FILE: symbol: reason".
    for (const char* opening : {"Error loading shared library ", "Error relocating "}) {
        if (strncmp(text, opening, strlen(opening)) == 0) {
            text += strlen(opening);
        }
    }
    const char* colon = strstr(text, ": ");
    if (colon == nullptr) {
        return {text, 0, text};
    }
    return {text, static_cast<size_t>(colon - text), colon + 2};
}

bool is_about_symbol(const LoadError& error) {
    return strstr(error.reason, "undefined symbol") != nullptr;
}

bool is_about_another_call(const LoadError& error) {
    return has_any(error.subject, kOtherCalls);
}

bool is_python_module(const char* asked) {
    return strstr(asked, ".cpython-") != nullptr || strstr(asked, ".abi3.so") != nullptr ||
           strstr(asked, "/lib-dynload/") != nullptr;
}

bool is_breakage(const char* asked, const LoadError& error, bool is_linker_script) {
    if (error.subject_length == 0 || has_any(error.subject, kBadCalls)) {
        return false;
    }
    const Piece subject{error.subject, error.subject_length};
    const Piece base = base_of(subject);
    if (begins_with(base, "libcuda.so") || begins_with(base, "libnvidia-")) {
        return false;
    }
    const bool itself = equal(subject, asked);
    if (strchr(asked, '/') != nullptr) {
        return !itself ||
               (!ends_with(error.reason, "No such file or directory") && !is_linker_script);
    }
    // A bare name: the search may have found a file of that name that is no good (ld goes on past a
    // library of another class, but stops at ld's script), or one that lacks what it needs itself.
    constexpr const char* kWantsMore[] = {"undefined symbol", "version `", "static TLS"};
    return !itself && (!equal(base, asked) || has_any(error.reason, kWantsMore));
}

}  // namespace cudiag
