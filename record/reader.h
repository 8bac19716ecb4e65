// Any bytes -> events, and what was lost. Never trusts a length; never throws on bad input, reports
// it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "record/format.h"

namespace cudiag {

struct FieldRead {
    Field field;
    std::string text;          // the raw bytes; for numbers too
    std::uint64_t number = 0;  // when the field is 8 bytes long
};

struct EntryRead {
    EntryKind kind;
    std::uint32_t tid = 0;
    std::uint64_t realtime_ns = 0;
    std::vector<FieldRead> fields;

    std::string_view text(Field field) const;                // first such field, or ""
    std::optional<std::uint64_t> number(Field field) const;  // first such field
};

struct HotRead {
    std::uint32_t tid = 0;
    std::uint16_t kind = 0, flags = 0;
    std::uint64_t ticks = 0;         // when it was appended; of an undated launch not before
    std::uint64_t latest_ticks = 0;  // not after: the same but for undated launches
    std::uint64_t realtime_ns = 0;   // of `ticks`, by the clock pairs
    std::uint64_t words[6] = {};
};

// What a reader could not get, so that nobody mistakes a part for the whole.
struct Losses {
    std::uint64_t torn_entries = 0;     // begun, never committed
    std::uint64_t dropped_entries = 0;  // the writer found no room
    std::uint64_t overwritten = 0;      // hot records pushed out by newer ones
    std::uint64_t torn_records = 0;
    std::uint64_t refused_threads = 0;
    std::string damage;  // what is wrong with the file itself, "" if nothing

    bool any() const {
        return torn_entries + dropped_entries + torn_records + refused_threads > 0 ||
               !damage.empty();
    }
};

struct Recording {
    std::string path;
    Header header{};  // validated copy
    std::vector<EntryRead> entries;
    std::vector<HotRead> hot;            // by time; of one thread in its own order
    std::vector<ProgressSlot> progress;  // slots in use
    Losses lost;
};

struct ReadError {
    std::string why;  // "not a cudiag recording", "format 7 is newer than this cudiag reads (1)", …
};

// Either a recording (perhaps with losses) or the reason why there is none.
struct ReadResult {
    std::optional<Recording> recording;
    ReadError error;
};

// The marks of a process in a file of shared memory (EntryKind::cuda_tracking: path): the slots in
// use, none if it is no such file or not a regular one.
std::vector<ProgressSlot> read_marks(const std::string& path);

ReadResult parse_recording(std::span<const std::byte> bytes);
ReadResult read_recording(const std::string& path);

// When it was those ticks (read_ticks in writer.h), by the header's two clock pairs; the time of
// opening where they give no rate.
std::uint64_t time_of_ticks(const Header& header, std::uint64_t ticks);

// A journal has no header: the recording's is zeros. What a killed or crowded-out writer left is
// skipped and counted in `lost.torn_entries`. Never fails on bytes: what is no journal is damage.
Recording parse_journal(std::span<const std::byte> bytes);
ReadResult read_journal(const std::string& path);

}  // namespace cudiag
