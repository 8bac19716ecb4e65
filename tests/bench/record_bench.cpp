// What an event costs the program that it happens in. The floor stands beside each figure, so that
// a ratio can be read off one run: clocks of virtual machines differ by a factor of five.
#include <benchmark/benchmark.h>

#include <memory>

#include "tests/bench/scratch_recording.h"

namespace cudiag {
namespace {

constexpr std::uint16_t kKind = 1;
constexpr std::uint64_t kWords[6] = {1, 2, 3, 4, 5, 6};
// As many records as a ring of the shim holds: the working set is that of real life (256 KiB).
constexpr std::uint32_t kRingRecords = 4096;
constexpr std::uint32_t kMostThreads = 2;
constexpr std::uint64_t kLogBytes = std::uint64_t{4} << 20;

// Made by the first thread of a benchmark before the timing begins; benchmark::State's threads meet
// before and after the loop, so that no thread sees it half made.
std::unique_ptr<bench::ScratchRecording> recording;

// The floor of a hot event: it has to say when it happened.
void ticks_alone(benchmark::State& state) {
    for (auto _ : state) {
        benchmark::DoNotOptimize(read_ticks());
    }
}

// The floor of a cold entry, which stands in wall-clock time.
void clock_alone(benchmark::State& state) {
    for (auto _ : state) {
        benchmark::DoNotOptimize(realtime_ns());
    }
}

// A record with a time in a ring of plain memory, with no promise to a reader: what the promise and
// the mapped file cost is the difference.
void plain_store(benchmark::State& state) {
    auto ring = std::make_unique<HotRecord[]>(kRingRecords);
    std::uint64_t next = 0;
    for (auto _ : state) {
        HotRecord& record = ring[next++ % kRingRecords];
        record.kind = kKind;
        record.ticks = read_ticks();
        for (std::size_t i = 0; i < 6; ++i) {
            record.words[i] = kWords[i];
        }
        benchmark::ClobberMemory();
    }
}

void append_hot(benchmark::State& state) {
    if (state.thread_index() == 0) {
        recording = std::make_unique<bench::ScratchRecording>(
            Capacity{kHeaderBytes, kMostThreads, kRingRecords});
    }
    RingHead* ring = nullptr;
    for (auto _ : state) {
        if (ring == nullptr) {
            ring = recording->writer.claim_ring();
            if (ring == nullptr) {
                state.SkipWithError("no ring");
                break;
            }
        }
        recording->writer.append_hot(ring, kKind, 0, kWords);
    }
}

void append_cold(benchmark::State& state) {
    if (state.thread_index() == 0) {
        recording = std::make_unique<bench::ScratchRecording>(Capacity{kLogBytes, 0, 0});
    }
    const auto fields = bench::failed_load();
    for (auto _ : state) {
        if (!recording->writer.append(EntryKind::dlopen_failed, fields.data(), fields.size())) {
            recording->rewind();
        }
    }
}

// What a process pays that has more to say than its log holds.
void append_to_a_full_log(benchmark::State& state) {
    bench::ScratchRecording full(Capacity{kHeaderBytes, 0, 0});
    const auto fields = bench::failed_load();
    while (full.writer.append(EntryKind::dlopen_failed, fields.data(), fields.size())) {
    }
    for (auto _ : state) {
        benchmark::DoNotOptimize(
            full.writer.append(EntryKind::dlopen_failed, fields.data(), fields.size()));
    }
}

BENCHMARK(ticks_alone);
BENCHMARK(clock_alone);
BENCHMARK(plain_store);
BENCHMARK(append_hot)->Threads(1)->Threads(kMostThreads)->UseRealTime();
BENCHMARK(append_cold)->Threads(1)->Threads(kMostThreads)->UseRealTime();
BENCHMARK(append_to_a_full_log);

}  // namespace
}  // namespace cudiag

BENCHMARK_MAIN();
