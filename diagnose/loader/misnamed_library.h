// A file that bears the name of one library and is another: a link that was made so that a build
// gets through.
#pragma once

#include <optional>
#include <string>

#include "diagnose/knowledge/toolchain.h"
#include "diagnose/loader/case.h"

namespace cudiag {

struct MisnamedLibrary {
    std::string path;                      // ".../libcurand.so"
    std::string soname;                    // "libcudart.so.13"
    const Linkable* stands_for = nullptr;  // never null
};

// The one by which `file` was linked, as far as it can be found: a library whose name begins the
// missing symbol (curandCreateGenerator, libcurand.so), in the directories of its run path, beside
// it, in those of torch and of LIBRARY_PATH.
std::optional<MisnamedLibrary> misnamed_library(const LoaderCase& c, const std::string& file,
                                                const std::string& symbol);

}  // namespace cudiag
