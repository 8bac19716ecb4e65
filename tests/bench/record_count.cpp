// Appends COUNT events and ends: the difference between two counts under callgrind is exactly what
// an event takes in instructions, on a machine as noisy as it likes (tests/bench/budgets.py).
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "tests/bench/scratch_recording.h"

int main(int argc, char** argv) {
    using namespace cudiag;
    const bool hot = argc == 3 && std::strcmp(argv[1], "hot") == 0;
    if (argc != 3 || (!hot && std::strcmp(argv[1], "cold") != 0)) {
        (void)std::fprintf(stderr, "usage: record_count hot|cold COUNT\n");
        return 2;
    }
    const unsigned long count = std::strtoul(argv[2], nullptr, 10);
    bench::ScratchRecording recording(Capacity{std::uint64_t{16} << 20, 1, 4096});
    RingHead* ring = recording.writer.claim_ring();
    const auto fields = bench::failed_load();
    const std::uint64_t words[6] = {1, 2, 3, 4, 5, 6};
    for (unsigned long i = 0; i < count; ++i) {
        if (hot) {
            recording.writer.append_hot(ring, 1, 0, words);
        } else if (!recording.writer.append(EntryKind::dlopen_failed, fields.data(),
                                            fields.size())) {
            (void)std::fprintf(stderr, "the log is full at entry %lu\n", i);
            return 3;
        }
    }
    return 0;
}
