// Calls of the driver that took as long as only its compiler takes: loads and look-ups of code, and
// first launches of a kernel (with lazy loading, that is when its code is made ready).
#pragma once

#include <stddef.h>
#include <stdint.h>

namespace cudiag {

uint64_t monotonic_ns();

// Notes the call if it took at least 0.1 s; a launch may also have waited for room in its queue,
// and large code is read for long: the command judges. `handle`, of a kernel or of code; `image`,
// code that was loaded (0: that of the handle); `file` that was loaded, or nullptr. At most 64 in a
// recording.
struct CodeCall {
    const char* name = nullptr;
    uint64_t began_ns = 0;  // monotonic_ns() before it
    uint64_t handle = 0;
    const void* image = nullptr;
    const char* file = nullptr;
    const char* kernel = nullptr;  // that was looked up
};

void note_if_slow(const CodeCall& call);

// A fork child, or a new recording.
void forget_slow_code();

}  // namespace cudiag
