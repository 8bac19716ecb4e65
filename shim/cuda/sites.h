// Places in Python from which kernels are launched, for CUDIAG_TRACK=1 and CUDIAG_SYNC=1. Only
// where the launching thread holds the GIL: torch releases it in every operator.
#pragma once

#include <stdint.h>

namespace cudiag {

// The number of the place from which this thread launches now, noted in the recording once; 0:
// none, or too many.
uint32_t note_site();

// A fork child, or a new recording.
void forget_sites();

}  // namespace cudiag
