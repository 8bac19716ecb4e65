// The host compiler that nvcc used, as the process tells: what `g++ --version` says in another
// shell may be another one.
#pragma once

#include <string>

#include "diagnose/build/case.h"

namespace cudiag {

struct HostCompiler {
    std::string kind;     // "gcc", "clang"; "" if it is not known
    std::string release;  // "12" or "12.2.0"
    std::string path;     // the driver, else the compiler proper
    int major = 0;
};

// Of the failed step itself or of a driver above it.
HostCompiler host_compiler_of(const BuildCase& c);

// Drivers of that kind on this machine with a major of at most `newest`, the newest first.
std::vector<HostCompiler> installed_up_to(const std::string& kind, int newest,
                                          const std::string& path);

}  // namespace cudiag
