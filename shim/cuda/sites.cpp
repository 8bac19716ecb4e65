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

void note_frames(uint64_t site) {
    FieldValue fields[1 + kPythonFields];
    PythonFrames frames;
    size_t count = frames.collect(fields + 1);
    count = count < 3 * kMostFrames ? count : 3 * kMostFrames;  // three fields a frame
    fields[0] = FieldValue::of(Field::index, site);
    (void)note(EntryKind::cuda_site, fields, 1 + count);
}

}  // namespace

uint32_t note_site() {
    const uint64_t hash = python_site();
    if (hash == 0) {
        return 0;
    }
    for (size_t i = 0; i < kMost; ++i) {
        uint64_t found = 0;
        if (__atomic_compare_exchange_n(&sites[i], &found, hash, false, __ATOMIC_ACQ_REL,
                                        __ATOMIC_ACQUIRE)) {
            note_frames(i + 1);
        }
        if (found == 0 || found == hash) {
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
