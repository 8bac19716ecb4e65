// The words for an error that a program asks its CUDA runtime for, to show them: cudart raises some
// errors without a call of the driver. Only of a shared libcudart, and only where the caller was
// linked with it (shim/bindings.h).
#pragma once

#include "shim/bindings.h"

namespace cudiag {

const Family& runtime_functions();

// In a fork child, or where the recording was given up: nothing is noted yet.
void forget_runtime_errors();

}  // namespace cudiag
