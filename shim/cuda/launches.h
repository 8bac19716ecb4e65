// Launches of kernels and graphs, and the waits that tell which of them are done: hot records in a
// ring of the launching thread. With CUDIAG_TRACK=1 each launch is followed by a mark that the GPU
// writes (progress.h), with CUDIAG_SYNC=1 by a wait.
#pragma once

#include <stdint.h>

#include "record/hot.h"
#include "shim/hot_state.h"

namespace cudiag {

struct Launch {
    uint64_t function = 0;  // or a graph
    uint64_t handle = 0;    // the stream as the program gave it
    uint64_t stream = 0;    // the same, 0 told apart (kLegacyStream, kPerThreadStream)
    uint32_t grid[3] = {};
    uint32_t block[3] = {};
    uint32_t shared = 0;
    HotKind kind = HotKind::launch;
    bool per_thread = false;  // the function's stream 0 is the thread's own
    uint16_t flags = 0;
    uint32_t mark = 0;
    uint32_t site = 0;
    uint64_t began_ns = 0;  // of a launch that may be the first of its kernel
};

// Opens the recording with rings, and what a process that launches needs beside it (the driver's
// log, CUDIAG_TRACK); once. False if there is no recording.
bool prepare_for_launches();

// The ring of a thread: five words of the 64 bytes of thread-locals that a guest may take.
struct OwnRing {
    RingHead* ring = nullptr;  // nullptr: there are none
    uint32_t recording = 0;    // whose
    uint32_t plain = 0;        // the same if no other thread writes to it
    uint32_t mask = 0;         // its records less one
    uint16_t undated = 0;      // plain launches until the clock is read, 0 and 1: by the next one
    uint16_t stride = 1;       // and how many it was from the last reading to that
    uint64_t ticks = 0;        // the last reading
};

// Initial-exec, as all of the shim.
// NOLINTNEXTLINE(bugprone-dynamic-static-initializers): constinit says that it is not
extern constinit thread_local OwnRing own_ring;

// Bits of hot_state.watch; below them the number of captures that are going on.
inline constexpr uint32_t kTrack = 1U << 31;
inline constexpr uint32_t kSync = 1U << 30;
inline constexpr uint32_t kFresh = 1U << 29;  // a kernel was just looked up: its code may be made
                                              // ready in its first launch
inline constexpr uint32_t kCount = 1U << 28;

// Whether a launch is noted, by note_plain_launch, and that is all: as nearly all are.
__attribute__((always_inline)) inline bool launch_is_plain() {
    return own_ring.plain == __atomic_load_n(&hot_state.recording, __ATOMIC_RELAXED) &&
           __atomic_load_n(&hot_state.watch, __ATOMIC_RELAXED) == 0;
}

// The words of a launch's record (record/format.h).
struct LaunchWords {
    uint64_t words[6];

    __attribute__((always_inline)) explicit LaunchWords(const Launch& launch)
        : words{launch.function,
                launch.stream,
                pair(launch.grid[0], launch.grid[1]),
                pair(launch.grid[2], launch.shared),
                (launch.block[0] & kMask) | (launch.block[1] & kMask) << kBits |
                    (launch.block[2] & kMask) << 2 * kBits,
                pair(launch.mark, launch.site)} {}

  private:
    // 21 bits each: a launch with more threads than that fails, and its failure is noted in full.
    static constexpr unsigned kBits = 21;
    static constexpr uint64_t kMask = (uint64_t{1} << kBits) - 1;

    static uint64_t pair(uint32_t low, uint32_t high) {
        return low | static_cast<uint64_t>(high) << 32;
    }
};

// Behind the driver's work reading the clock takes as long as all the rest of a record
// (docs/gpu-results.md). Where launches follow each other closely up to 16 share a reading; one
// that came late, or after anything else that the thread noted, has its own.
constexpr uint16_t kMostUndated = 16;

// Some 0.1 ms: a reading takes less than a thousandth of that.
__attribute__((always_inline)) inline uint64_t close_ticks() {
#if defined(__aarch64__)
    uint64_t a_second = 0;
    __asm__("mrs %0, cntfrq_el0" : "=r"(a_second));
    return a_second / 10000;
#else
    return 250'000;
#endif
}

// The flags of the thread's next plain launch, whose ticks are own_ring.ticks.
__attribute__((always_inline)) inline uint16_t date_plain_launch() {
    if (own_ring.undated > 1) {
        --own_ring.undated;
        return kUndated;
    }
    const uint64_t now = read_ticks();
    const uint16_t stride = own_ring.stride;
    const bool close = now - own_ring.ticks < stride * close_ticks();
    own_ring.stride = !close ? 1 : stride < kMostUndated ? 2 * stride : stride;
    own_ring.undated = own_ring.stride;
    own_ring.ticks = now;
    return 0;
}

// Before a launch (it may never return). No allocation and no lock; not async-signal-safe, as CUDA
// is not.
template <HotKind kind>
__attribute__((always_inline)) inline void note_plain_launch(const Launch& launch) {
    const uint16_t flags = date_plain_launch();
    append_own_record(own_ring.ring, own_ring.mask, static_cast<uint16_t>(kind), flags,
                      own_ring.ticks, LaunchWords(launch).words);
}

// Around any other launch, a thread's first, one that is captured, marked, waited for or timed:
// note_launch before it, settle_launch after it if it succeeded and must_settle said so. What
// settling waits for may fail: that error is returned, 0 else.
void note_launch(Launch& launch);

inline bool must_settle() {
    return (__atomic_load_n(&hot_state.watch, __ATOMIC_RELAXED) & (kTrack | kSync | kFresh)) != 0;
}

// `call`: the function's name.
int settle_launch(const Launch& launch, const char* call);

// A kernel was looked up: the next launches are timed.
void expect_first_launch();

// A wait succeeded that began at those ticks; of a stream (as in Launch::stream) or of a context
// (0: the current one).
void note_waited(WaitedFor what, uint64_t handle, uint64_t began);

// A context was made, or the primary one of a device taken: of one alone is a wait for "the"
// context a wait for everything.
void note_context(uint64_t context);

// A call failed: a hot record, so that the last ones are kept however many there are.
void note_failure_in_ring(uint64_t call, int error, uint64_t stream, uint64_t function,
                          bool refused_launch);

// Between begin and end of a capture, launches are asked for being captured.
void note_capture(bool begins);

bool capture_is_going_on();

// Whether each launch is counted (count_launch in shim/profile.h).
void count_launches(bool wanted);

// A graph was instantiated from `graph`: notes how many kernels it has.
void note_graph(uint64_t executable, void* graph);

// A fork child, or a new recording.
void forget_launches();

}  // namespace cudiag
