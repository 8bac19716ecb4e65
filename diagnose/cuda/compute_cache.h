// The driver's cache of what it has compiled, as the process was told to use it and as it stands
// now.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "diagnose/facts.h"

namespace cudiag {

struct ComputeCache {
    bool off = false;       // CUDA_CACHE_DISABLE=1
    std::string directory;  // "" if it is not known: no HOME
    bool there = false;
    bool writable = false;                     // by whoever looks; or it can be made
    std::uint64_t bytes = 0;                   // of its files
    std::optional<std::uint64_t> limit_bytes;  // CUDA_CACHE_MAXSIZE; else the driver's own

    bool nearly_full() const;
    std::string words() const;  // one line
};

// CUDA C++ Programming Guide, "CUDA Environment Variables": CUDA_CACHE_DISABLE, CUDA_CACHE_PATH
// (~/.nv/ComputeCache on Linux), CUDA_CACHE_MAXSIZE. Reads the directory.
ComputeCache compute_cache_of(const Process& process);

}  // namespace cudiag
