// What every launch looks at, in one line of the cache: whether the calling thread's ring is still
// one of the open recording, and whether more than the launch itself is to be noted.
#pragma once

#include <stdint.h>

namespace cudiag {

struct alignas(64) HotState {
    // Counts the recordings of this process: a fork child, and a recording given up, begin another.
    // Written by session.cpp.
    uint32_t recording = 1;
    // 0, as always but for captures, CUDIAG_TRACK, CUDIAG_SYNC and CUDIAG_PROFILE: a launch is
    // noted and that is all. Written by cuda/launches.cpp.
    uint32_t watch = 0;
};

// NOLINTNEXTLINE(bugprone-dynamic-static-initializers): constinit says that it is not
extern constinit HotState hot_state;

}  // namespace cudiag
