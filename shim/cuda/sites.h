// Places in Python from which kernels are launched, for CUDIAG_TRACK=1 and CUDIAG_SYNC=1. Most
// launch without the GIL, as torch does in every operator: see python.h for when frames are known.
#pragma once

#include <stdint.h>

namespace cudiag {

// The number of the place from which this thread launches now, noted in the recording once; 0:
// none, or too many.
uint32_t note_site();

// A fork child, or a new recording.
void forget_sites();

}  // namespace cudiag
