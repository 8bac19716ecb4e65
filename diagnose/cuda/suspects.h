// Which launches can have caused an asynchronous error: an error of a kernel is reported by some
// later call, and what the GPU had not finished then is all that comes into question.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "diagnose/cuda/running.h"

namespace cudiag {

// How well the launch at fault is known.
enum class Pinned : std::uint8_t {
    core,      // the core dump of the GPU names the kernel
    waited,    // CUDIAG_SYNC waited for it, and the wait failed
    marked,    // CUDIAG_TRACK: the first that its stream had not finished, one a stream
    only_one,  // it was the only one that was not known to be finished
    no,        // one of those that were not known to be finished
    unseen,    // none was seen
};

struct Suspects {
    Pinned pinned = Pinned::unseen;
    std::vector<const CudaLaunch*> launches;  // the likeliest first; by a core, of its kernel
    std::uint64_t pending = 0;  // not known to be finished when the error was reported
    std::uint64_t streams = 0;  // of them
    bool lost = false;          // older records were overwritten: the launch may be among them
};

Suspects suspects_of(const RunningCase& c);

// The kernel, or "a CUDA graph of 20 kernels".
std::string launch_name(const CudaLaunch& launch);

// kernel, signature, grid, block, shared_bytes, stream, us_before (the failed call, if there is
// one), python.
nlohmann::ordered_json launch_json(const CudaLaunch& launch, const FailedCudaCall* failed);

}  // namespace cudiag
