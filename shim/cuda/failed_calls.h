// Calls of the driver that gave an error, and the driver that gave it. A failed call is a probe
// until the process fails: one that ends well removes its recording.
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "shim/cuda/driver.h"

namespace cudiag {

// Notes the error, unless the function is asked for such answers. At most 64 in a process, and 4 of
// the same call from the same place: after an error that sticks every call fails. `entry` tells
// functions apart. Not async-signal-safe, as CUDA is not.
void note_failed_call(const DriverCall& call, size_t entry, int error, uintptr_t caller);

// cuInit or cuDriverGetVersion succeeded: remembers the driver, and notes it in the recording if
// there is one.
void remember_driver();

// Notes the driver, if this process has asked one and that was not done yet: the recording has just
// been opened.
void note_driver();

// In a fork child, or where the recording was given up: nothing is noted yet.
void forget_driver_calls();

}  // namespace cudiag
