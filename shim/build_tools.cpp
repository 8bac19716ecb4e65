#include "shim/build_tools.h"

#include <stddef.h>
#include <string.h>
#include <unistd.h>

namespace cudiag {
namespace {

// CUDA's by its toolkit's bin and nvvm/bin, gcc's by its libexec, binutils' and clang's by their
// packages in Debian.
constexpr const char* kSteps[] = {
    "nvcc",    "cudafe++", "cicc",    "ptxas",       "fatbinary", "nvlink",   "cc1",
    "cc1plus", "gcc",      "g++",     "cc",          "c++",       "collect2", "lto1",
    "as",      "ld",       "ld.bfd",  "ld.gold",     "gold",      "lld",      "ld.lld",
    "mold",    "clang",    "clang++", "lto-wrapper", "ccache",    "sccache"};
constexpr const char* kCoordinators[] = {"ninja", "ninja-build", "make",
                                         "gmake", "cmake",       "cmake3"};
constexpr const char* kShells[] = {"sh",   "bash", "dash", "zsh", "ksh",
                                   "mksh", "fish", "tcsh", "csh", "busybox"};

// Without the version behind the last dash: "g++-12" -> "g++".
size_t bare_length(const char* name) {
    const char* dash = strrchr(name, '-');
    if (dash == nullptr || dash[1] < '0' || dash[1] > '9') {
        return strlen(name);
    }
    return static_cast<size_t>(dash - name);
}

template <size_t N>
bool is_one_of(const char* const (&tools)[N], const char* name, size_t length) {
    for (const char* tool : tools) {
        const size_t size = strlen(tool);
        if (length >= size && memcmp(name + length - size, tool, size) == 0 &&
            (length == size || name[length - size - 1] == '-')) {
            return true;
        }
    }
    return false;
}

}  // namespace

BuildRole build_role(const char* base_name) {
    const size_t length = bare_length(base_name);
    if (is_one_of(kCoordinators, base_name, length)) {
        return BuildRole::coordinator;
    }
    return is_one_of(kSteps, base_name, length) ? BuildRole::step : BuildRole::not_one;
}

bool is_cuda_compiler(const char* base_name) {
    return strcmp(base_name, "nvcc") == 0;
}

const char* own_program(char* buffer, size_t size) {
    const ssize_t length = readlink("/proc/self/exe", buffer, size - 1);
    buffer[length > 0 ? length : 0] = '\0';
    const char* slash = strrchr(buffer, '/');
    return slash == nullptr ? buffer : slash + 1;
}

bool is_shell(const char* base_name) {
    for (const char* shell : kShells) {
        if (strcmp(base_name, shell) == 0) {
            return true;
        }
    }
    return false;
}

}  // namespace cudiag
