// What a recording tells of NCCL: its calls that failed, and the communicators that were made.
#pragma once

#include "diagnose/facts.h"

namespace cudiag {

// NcclCall::result of a call that had not returned when the recording ended.
inline constexpr std::uint64_t kNotReturned = UINT64_MAX;

void add_nccl_facts(const Recording& recording, Process& process);

}  // namespace cudiag
