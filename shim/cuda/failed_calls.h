// Calls of the driver that gave an error, and the driver that gave it. A failed call is a probe
// until the process fails: one that ends well removes its recording.
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "shim/cuda/driver.h"
#include "shim/cuda/launches.h"

namespace cudiag {

// What a failed call was asked for, as far as it is of use; no handle is looked into.
struct CallDetails {
    const Launch* launch = nullptr;
    bool waited = false;  // the launch succeeded, and the wait behind it failed (CUDIAG_SYNC)
    uint64_t handle = 0;  // of a kernel, or of the code in which one was looked up
    const char* name = nullptr;   // that was looked up, or of a file of code
    const void* image = nullptr;  // code to be loaded: the program's, valid during the call
    bool is_module = false;       // cuModuleLoadData without options: it can be tried again
    uint64_t bytes = 0;           // to be allocated
};

// Notes the error, unless the function is asked for such answers: in the ring of a thread that
// launches, and in the log at most 64 in a process, and 4 of the same call from the same place
// (after an error that sticks every call fails), but the first that sticks in any case. `entry`
// tells functions apart. Not async-signal-safe, as CUDA is not.
void note_failed_call(const DriverCall& call, size_t entry, int error, uintptr_t caller,
                      const CallDetails& details);

// A context was destroyed, which all of the process may have used. Noted where there is a recording
// already (that of a process that launched), as often as a failure. Not async-signal-safe.
void note_context_gone(const DriverCall& call, size_t entry, uintptr_t caller);

// Is it an error after which the process must end to use CUDA again?
bool is_sticky(int error);

// cuInit or cuDriverGetVersion succeeded: remembers the driver, and notes it in the recording if
// there is one.
void remember_driver();

// Notes the driver, if this process has asked one and that was not done yet: the recording has just
// been opened.
void note_driver();

// In a fork child, or where the recording was given up: nothing is noted yet.
void forget_driver_calls();

}  // namespace cudiag
