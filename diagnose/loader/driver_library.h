// The driver's library as a process has it, or would find it; and what to do where there is none.
#pragma once

#include <string>
#include <vector>

#include "diagnose/facts.h"
#include "diagnose/loader/search.h"
#include "diagnose/machine.h"

namespace cudiag {

// The driver as the process has it mapped, or as its CUDA runtime found it: cudart maps
// libcuda.so.1, asks it, is told an error and lets it go again, so that at the end only the search
// can tell.
struct DriverLibrary {
    std::string path;  // "" if there is none, or nothing in the process asks for one
    bool mapped = false;
    Lookup lookup;
};

DriverLibrary driver_library_of(const LoadState& state, const std::vector<Module>& modules);

// What the machine shows decides the advice: a package can't bring a driver to a machine that has
// no card, nor into a container that was started without one.
std::vector<Fix> fixes_for_missing_driver(const Machine& machine);

}  // namespace cudiag
