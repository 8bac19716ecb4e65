// A small recording with some of everything, for the tests that damage it.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "tests/unit/record/recording_file.h"

namespace cudiag::testing {

inline constexpr Capacity kSampleCapacity{4096, 2, 4};

// Six entries of several kinds; one ring with three records, one that wrapped round.
inline void write_sample(Writer& writer) {
    const std::array process = {FieldValue::of(Field::path, "/usr/bin/python3"),
                                FieldValue::of(Field::argument, "python3"),
                                FieldValue::of(Field::argument, "train.py"),
                                FieldValue::of(Field::working_directory, "/home/user")};
    writer.append(EntryKind::process, process.data(), process.size());
    const std::array variable = {FieldValue::of(Field::name, "LD_LIBRARY_PATH"),
                                 FieldValue::of(Field::value, "")};
    writer.append(EntryKind::variable, variable.data(), variable.size());
    for (std::uint64_t i = 0; i < 2; ++i) {
        const std::string path(5 + 3 * i, 'm');
        const std::array module = {FieldValue::of(Field::path, path.c_str()),
                                   FieldValue::of(Field::base, 0x7f0000000000 + i),
                                   FieldValue::of(Field::snapshot, std::uint64_t{0})};
        writer.append(EntryKind::module, module.data(), module.size());
    }
    const std::array failed = {FieldValue::of(Field::name, "libcudart.so.11.0"),
                               FieldValue::of(Field::text, "cannot open shared object file"),
                               FieldValue::of(Field::flags, std::uint64_t{2})};
    writer.append(EntryKind::dlopen_failed, failed.data(), failed.size());
    writer.append(EntryKind::snapshot, nullptr, 0);
    for (std::uint64_t records : {3U, 9U}) {
        RingHead* ring = writer.claim_ring();
        for (std::uint64_t i = 0; i < records; ++i) {
            const std::uint64_t words[6] = {records, i, ~i, 0, 0, 0x5a5a5a5a5a5a5a5a};
            writer.append_hot(ring, 1, static_cast<std::uint16_t>(records), words);
        }
    }
    writer.mark_end(EndHow::exit, 1);
}

inline std::vector<std::byte> sample_bytes() {
    OpenRecording recording(kSampleCapacity);
    write_sample(recording.writer);
    return contents(recording.path());
}

inline bool same(const HotRead& a, const HotRead& b) {
    return a.tid == b.tid && a.kind == b.kind && a.flags == b.flags &&
           std::equal(std::begin(a.words), std::end(a.words), std::begin(b.words));
}

// Is every item of `part` one of `whole`, each used once?
template <class Item>
bool is_part_of(const std::vector<Item>& part, const std::vector<Item>& whole) {
    std::vector<bool> used(whole.size());
    for (const Item& item : part) {
        std::size_t i = 0;
        while (i < whole.size() && (used[i] || !same(item, whole[i]))) {
            ++i;
        }
        if (i == whole.size()) {
            return false;
        }
        used[i] = true;
    }
    return true;
}

}  // namespace cudiag::testing
