// Appending a hot record, inline: one function in the place of three, and nothing but the ring and
// the caller's own words is looked at. libc only; no allocation, no lock, no errno change;
// async-signal-safe.
#pragma once

#include <cstddef>
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

// Each word is stored by itself, from where it was computed: words that went through an array would
// be read back wider than they were written, which waits until all stores before it are done, and
// behind a launch these are the driver's to the GPU (docs/gpu-results.md).
inline void write_hot_record(HotRecord* record, std::uint64_t number, std::uint16_t kind,
                             std::uint16_t flags, std::uint64_t ticks,
                             const std::uint64_t (&words)[6]) {
    __atomic_store_n(&record->commit, 0, __ATOMIC_RELAXED);
    __atomic_thread_fence(__ATOMIC_RELEASE);
    // Kind and flags in one: as two, GCC fetches both from a table.
    const std::uint32_t both = kind | static_cast<std::uint32_t>(flags) << 16;
    static_assert(offsetof(HotRecord, flags) == offsetof(HotRecord, kind) + 2 &&
                  __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__);
    memcpy(reinterpret_cast<char*>(record) + offsetof(HotRecord, kind), &both, sizeof both);
    record->ticks = ticks;
    record->words[0] = words[0];
    record->words[1] = words[1];
    record->words[2] = words[2];
    record->words[3] = words[3];
    record->words[4] = words[4];
    record->words[5] = words[5];
    __atomic_store_n(&record->commit, static_cast<std::uint32_t>(number & 0x7fffffffU) + 1,
                     __ATOMIC_RELEASE);
}

// Appends to a ring of the calling thread alone (Writer::claim_ring); `mask` is the number of its
// records, a power of two, less one.
inline void append_own_record(RingHead* ring, std::uint32_t mask, std::uint16_t kind,
                              std::uint16_t flags, std::uint64_t ticks,
                              const std::uint64_t (&words)[6]) {
    auto* const records = reinterpret_cast<HotRecord*>(ring + 1);
    const std::uint64_t number = ring->next;
    write_hot_record(records + (number & mask), number, kind, flags, ticks, words);
    __atomic_store_n(&ring->next, number + 1, __ATOMIC_RELEASE);
    // The next record's line has time to come until then.
    __builtin_prefetch(records + ((number + 1) & mask), 1);
}

// The same to any ring, at this moment: the shared one needs a locked instruction.
inline void append_hot_record(RingHead* ring, std::uint32_t mask, std::uint16_t kind,
                              std::uint16_t flags, const std::uint64_t (&words)[6]) {
    if (ring->tid != kSharedRing) {
        append_own_record(ring, mask, kind, flags, read_ticks(), words);
        return;
    }
    const std::uint64_t number = __atomic_fetch_add(&ring->next, 1, __ATOMIC_RELAXED);
    write_hot_record(reinterpret_cast<HotRecord*>(ring + 1) + (number & mask), number, kind, flags,
                     read_ticks(), words);
}

}  // namespace cudiag
