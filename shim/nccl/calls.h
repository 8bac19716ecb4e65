// NCCL's functions (calls.def) and what stands in for them, where callers have bound them
// (shim/bindings.h) or ask dlsym for them. A call that fails is noted with NCCL's own words, one
// that makes a communicator in any case; of all others nothing is.
#pragma once

#include "shim/bindings.h"

namespace cudiag {

const Family& nccl_functions();

// Is this the name of a function in calls.def?
bool is_nccl_call(const char* name);

// In a fork child, or where the recording was given up: nothing is noted yet.
void forget_nccl_calls();

}  // namespace cudiag
