// Appending a hot record, inline: one function in the place of three, and nothing but the ring and
// the caller's own words is looked at. libc only; no allocation, no lock, no errno change;
// async-signal-safe.
#pragma once

#include <cstdint>
#include <cstring>

#include "record/format.h"

namespace cudiag {

// rdtsc or cntvct_el0: cheap, monotonic per machine, turned into time by the header's clock pairs.
inline std::uint64_t read_ticks() {
#if defined(__x86_64__)
    return __builtin_ia32_rdtsc();
#elif defined(__aarch64__)
    std::uint64_t ticks = 0;
    __asm__ volatile("mrs %0, cntvct_el0" : "=r"(ticks));
    return ticks;
#else
#error "no tick counter for this architecture"
#endif
}

// Appends to a ring of `records` records that Writer::claim_ring gave to the calling thread, or to
// the shared one.
inline void append_hot_record(RingHead* ring, std::uint32_t records, std::uint16_t kind,
                              std::uint16_t flags, const std::uint64_t (&words)[6]) {
    // A ring of one thread needs no locked instruction.
    const bool shared = ring->tid == kSharedRing;
    const std::uint64_t number = __builtin_expect(shared, 0)
                                     ? __atomic_fetch_add(&ring->next, 1, __ATOMIC_RELAXED)
                                     : ring->next;
    // A division takes as long as all the rest but the clock: rings are a power of two unless
    // someone insists (tests/bench).
    const std::uint32_t mask = records - 1;
    const auto place = [&](std::uint64_t of) {
        return reinterpret_cast<HotRecord*>(ring + 1) +
               ((records & mask) == 0 ? of & mask : of % records);
    };
    HotRecord* const record = place(number);
    __atomic_store_n(&record->commit, 0, __ATOMIC_RELAXED);
    __atomic_thread_fence(__ATOMIC_RELEASE);
    record->kind = kind;
    record->flags = flags;
    record->ticks = read_ticks();
    memcpy(record->words, words, sizeof record->words);
    __atomic_store_n(&record->commit, static_cast<std::uint32_t>(number & 0x7fffffffU) + 1,
                     __ATOMIC_RELEASE);
    if (__builtin_expect(!shared, 1)) {
        __atomic_store_n(&ring->next, number + 1, __ATOMIC_RELEASE);
    }
    // The next record's line has time to come until then. Beside a real driver no gain could be
    // told from noise (docs/gpu-results.md); over a double it costs nothing.
    __builtin_prefetch(place(number + 1), 1);
}

}  // namespace cudiag
