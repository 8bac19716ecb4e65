// Writes a recording from inside the victim: no allocation, no lock, no errno change; append and
// append_hot are async-signal-safe once the recording is open. libc only.
#pragma once

#include <cstddef>
#include <cstdint>

#include "record/format.h"
#include "record/hot.h"

namespace cudiag {

// One field of an entry to be. Text points to the caller's bytes, which are copied by append.
struct FieldValue {
    const void* bytes;
    std::uint64_t number;  // used when bytes is nullptr
    std::uint32_t size;
    Field field;

    static FieldValue of(Field field, const void* bytes, std::size_t size);
    static FieldValue of(Field field, const char* text);  // nullptr counts as ""
    static FieldValue of(Field field, std::uint64_t number);
};

// Sizes of a recording; all of it is allocated before use.
struct Capacity {
    std::uint64_t log_bytes = std::uint64_t{1} << 20;
    std::uint32_t ring_count = 0;
    std::uint32_t ring_records = 4096;  // of each; a power of two, or 0 for no rings
};

struct Identity {
    std::int32_t pid, ppid, root_pid;
    std::uint64_t start_ticks, root_start_ticks;
};

enum class OpenResult : std::uint8_t { ok, no_space, over_limit, exists, no_permission, failed };

class Writer {
  public:
    // Creates `name` in the directory open as `directory` (O_EXCL, O_NOFOLLOW, mode 0600),
    // allocates every block (posix_fallocate, after a look at RLIMIT_FSIZE), maps it and closes the
    // descriptor. On failure nothing is left behind and *error holds errno.
    OpenResult open(int directory, const char* name, const Capacity& capacity,
                    const Identity& identity, int* error);

    // Appends one entry; false (and a count in the header) when it does not fit. Thread- and
    // signal-safe.
    bool append(EntryKind kind, const FieldValue* fields, std::size_t count);

    // Adds rings to an open recording that has none: `name` in `directory` is its file. The last of
    // several is shared by the threads that find no other; `records`, of each, is a power of two.
    // On failure the recording goes on without, and *error holds errno. One thread at a time.
    OpenResult add_rings(int directory, const char* name, std::uint32_t count,
                         std::uint32_t records, int* error);

    bool has_rings() const { return __atomic_load_n(&rings_, __ATOMIC_ACQUIRE) != nullptr; }

    // Claims a ring for the calling thread, or gives the shared one; nullptr without rings. The
    // ring is the caller's until the process ends.
    RingHead* claim_ring();

    // Appends a hot record to a ring of the calling thread, or to the shared one.
    void append_hot(RingHead* ring, std::uint16_t kind, std::uint16_t flags,
                    const std::uint64_t (&words)[6]);

    // Of each ring; 0 without any.
    std::uint32_t ring_records() const { return ring_records_; }

    // Notes how the process ends; the first call wins unless it was `exec` or `abort`.
    void mark_end(EndHow how, int status);

    // kProgressSlots slots, in a page of their own; nullptr if no recording is open.
    ProgressSlot* progress() const;

    bool is_open() const { return header_ != nullptr; }

    // Forgets the mapping without unmapping it: what a fork child does with its parent's.
    void forget() {
        header_ = nullptr;
        rings_ = nullptr;
    }

  private:
    Header* header_ = nullptr;
    char* rings_ = nullptr;
    std::uint32_t ring_records_ = 0;
};

std::uint64_t realtime_ns();

}  // namespace cudiag
