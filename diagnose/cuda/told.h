// How a process was told that CUDA failed: by the exception that ended it, or, for want of words,
// by the last call of the driver that gave an error.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "diagnose/facts.h"

namespace cudiag {

struct Told {
    int code = 0;       // of CUresult and cudaError_t
    std::string error;  // the words
    std::string call;   // that gave it; "" if not known
    std::uint64_t time_ns = 0;
    std::int32_t tid = 0;
    std::vector<PythonFrame> python;
    std::optional<unsigned long long> driver_version;
    std::string
        inferred;  // from what it is inferred that the process ended of it; "" if it said so
};

// Of the exceptions the last one counts that tells a code; a program that had other words tells
// nothing by its calls.
std::optional<Told> told_of(const Process& process);

// The driver's own call that failed with this code, the last one; nullptr if none was seen.
const FailedCudaCall* call_with(const Process& process, int code);

// By this call, whatever the program said.
Told told_by_call(const FailedCudaCall& call);

// Did the process end within 10 s after this, or, where nobody saw when it was killed, without
// having done anything of CUDA since?
bool is_just_before_the_end(const Process& process, std::uint64_t time_ns);

// A script that ends with a status of its own choosing says nothing of what it tried before.
bool had_other_words(const Process& process);

}  // namespace cudiag
