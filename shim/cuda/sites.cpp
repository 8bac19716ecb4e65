#include "shim/cuda/sites.h"

#include <stddef.h>

#include "shim/python.h"
#include "shim/session.h"

namespace cudiag {
namespace {

// A site takes some kilobytes of the log at most.
constexpr size_t kMost = 128;
constexpr size_t kMostFrames = 8;

uint64_t sites[kMost];  // hashes; 0: free. A site's number is its place, from 1 on

// Files and functions by the address of their text, which lives as long as the code that runs.
uint64_t hash_of(const FieldValue* fields, size_t count) {
    uint64_t hash = 0xcbf29ce484222325;  // FNV-1a
    for (size_t i = 0; i < count; ++i) {
        const uint64_t value = fields[i].bytes != nullptr
                                   ? reinterpret_cast<uintptr_t>(fields[i].bytes)
                                   : fields[i].number;
        hash = (hash ^ value) * 0x100000001b3;
    }
    return hash == 0 ? 1 : hash;
}

}  // namespace

uint32_t note_site() {
    FieldValue fields[1 + kPythonFields];
    PythonFrames frames;
    size_t count = frames.collect(fields + 1);
    if (count == 0) {
        return 0;
    }
    count = count < 3 * kMostFrames ? count : 3 * kMostFrames;  // three fields a frame
    const uint64_t hash = hash_of(fields + 1, count);
    for (size_t i = 0; i < kMost; ++i) {
        uint64_t found = 0;
        if (__atomic_compare_exchange_n(&sites[i], &found, hash, false, __ATOMIC_ACQ_REL,
                                        __ATOMIC_ACQUIRE)) {
            fields[0] = FieldValue::of(Field::index, uint64_t{i + 1});
            (void)note(EntryKind::cuda_site, fields, 1 + count);
            return static_cast<uint32_t>(i + 1);
        }
        if (found == hash) {
            return static_cast<uint32_t>(i + 1);
        }
    }
    return 0;
}

void forget_sites() {
    for (uint64_t& site : sites) {
        site = 0;
    }
}

}  // namespace cudiag
