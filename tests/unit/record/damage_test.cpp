// What a reader may never do with a damaged file: crash, invent events, or give a part for the
// whole without saying so.
#include <signal.h>
#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <map>
#include <random>
#include <thread>

#include "tests/unit/record/recording_file.h"
#include "tests/unit/record/sample.h"

namespace cudiag {
namespace {

using testing::is_part_of;
using testing::kLogBegin;
using testing::OpenRecording;
using testing::sample_bytes;
using testing::TemporaryDirectory;

::testing::AssertionResult honest(const ReadResult& result, const Recording& whole) {
    if (!result.recording) {
        return result.error.why.empty()
                   ? ::testing::AssertionFailure() << "neither a recording nor a reason"
                   : ::testing::AssertionSuccess();
    }
    const Recording& read = *result.recording;
    if (!is_part_of(read.entries, whole.entries) || !is_part_of(read.hot, whole.hot)) {
        return ::testing::AssertionFailure() << "reports what was never written";
    }
    const bool all =
        read.entries.size() == whole.entries.size() && read.hot.size() == whole.hot.size();
    return all || read.lost.any() ? ::testing::AssertionSuccess()
                                  : ::testing::AssertionFailure()
                                        << "gives a part for the whole: " << read.entries.size()
                                        << " entries, " << read.hot.size() << " records";
}

TEST(DamagedRecording, CutAtEveryLengthIsSaidToBeCut) {
    const std::vector<std::byte> bytes = sample_bytes();
    const Recording whole = parse_recording(bytes).recording.value();
    ASSERT_EQ(whole.entries.size(), 6U);
    ASSERT_FALSE(whole.lost.any());
    for (std::size_t length = 0; length < bytes.size(); ++length) {
        // A copy of exactly this length: AddressSanitizer sees a read past its end.
        const std::vector<std::byte> cut(bytes.begin(),
                                         bytes.begin() + static_cast<std::ptrdiff_t>(length));
        const ReadResult result = parse_recording(cut);
        ASSERT_TRUE(honest(result, whole)) << "cut at " << length;
        ASSERT_TRUE(!result.recording || !result.recording->lost.damage.empty())
            << "cut at " << length;
    }
}

TEST(DamagedRecording, CutFileOnDiskKeepsWhatStandsBeforeTheCut) {
    const TemporaryDirectory directory;
    std::vector<std::byte> bytes = sample_bytes();
    bytes.resize(kLogBegin + 400);
    testing::write_file(directory.file("r"), bytes);
    const ReadResult result = read_recording(directory.file("r"));
    ASSERT_TRUE(result.recording);
    EXPECT_EQ(result.recording->lost.damage, "the file is cut at 8592 of 12928 bytes");
    EXPECT_GE(result.recording->entries.size(), 2U);
    EXPECT_EQ(result.recording->entries[0].text(Field::path), "/usr/bin/python3");
}

TEST(DamagedRecording, HeaderWithAnyByteFlippedNeverPassesGarbageOffAsWhole) {
    const std::vector<std::byte> bytes = sample_bytes();
    const Recording whole = parse_recording(bytes).recording.value();
    std::vector<std::byte> flipped = bytes;
    for (std::size_t at = 0; at < sizeof(Header); ++at) {
        for (const unsigned mask : {1U, 2U, 4U, 8U, 16U, 32U, 64U, 128U, 255U}) {
            flipped[at] = bytes[at] ^ static_cast<std::byte>(mask);
            ASSERT_TRUE(honest(parse_recording(flipped), whole))
                << "byte " << at << " xor " << mask;
        }
        flipped[at] = bytes[at];
    }
}

TEST(DamagedRecording, EntryHeadWithAnyBitFlippedIsNotReadBeyondTheFile) {
    const std::vector<std::byte> bytes = sample_bytes();
    const Recording whole = parse_recording(bytes).recording.value();
    std::vector<std::byte> flipped = bytes;
    // commit and bytes vouch for an entry; kind, tid and time do not.
    for (std::size_t at = kLogBegin; at < kLogBegin + 8; ++at) {
        for (unsigned bit = 0; bit < 8; ++bit) {
            flipped[at] = bytes[at] ^ static_cast<std::byte>(1U << bit);
            const ReadResult result = parse_recording(flipped);
            ASSERT_TRUE(honest(result, whole)) << "byte " << at << " bit " << bit;
            ASSERT_GE(result.recording.value().lost.torn_entries, 1U);
        }
        flipped[at] = bytes[at];
    }
}

// What the child tells its parent through shared memory: entries whose append has returned.
struct Progress {
    std::atomic<std::uint64_t> open;
    std::array<std::atomic<std::uint64_t>, 3> entries;
    std::array<std::atomic<std::uint64_t>, 3> records;
};

std::string text_of(std::uint64_t thread, std::uint64_t number) {
    return std::string(number % 47, static_cast<char>('A' + (number * 7 + thread) % 26));
}

void append_for_ever(Writer& writer, Progress& progress, std::uint64_t thread) {
    RingHead* ring = writer.claim_ring();
    bool room = true;
    for (std::uint64_t i = 0;; ++i) {
        const std::string text = text_of(thread, i);
        const std::array fields = {FieldValue::of(Field::index, thread),
                                   FieldValue::of(Field::text, text.c_str()),
                                   FieldValue::of(Field::status, i)};
        room = room && writer.append(EntryKind::variable, fields.data(), fields.size());
        if (room) {
            progress.entries[thread].store(i + 1);
        }
        const std::uint64_t words[6] = {thread, i, i + 1, i + 2, i + 3, ~i};
        writer.append_hot(ring, 3, static_cast<std::uint16_t>(i), words);
        progress.records[thread].store(i + 1);
    }
}

[[noreturn]] void be_the_victim(int directory, const Capacity& capacity, Progress& progress) {
    // Never destroyed: the process is killed, or ends by _exit.
    static Writer writer;
    int error = 0;
    if (writer.open(directory, "r", capacity, testing::kIdentity, &error) != OpenResult::ok) {
        _exit(1);
    }
    progress.open.store(1);
    std::vector<std::thread> threads;
    for (std::uint64_t t = 1; t < progress.entries.size(); ++t) {
        threads.emplace_back([&progress, t] { append_for_ever(writer, progress, t); });
    }
    append_for_ever(writer, progress, 0);
    _exit(1);
}

void check_survivors(const Recording& read, const Progress& progress, const Capacity& capacity) {
    std::array<std::uint64_t, 3> next{};
    for (const EntryRead& entry : read.entries) {
        const std::uint64_t t = entry.number(Field::index).value_or(99);
        ASSERT_LT(t, next.size());
        ASSERT_EQ(entry.number(Field::status), next[t]);
        ASSERT_EQ(entry.text(Field::text), text_of(t, next[t]));
        ++next[t];
    }
    std::map<std::uint64_t, std::vector<std::uint64_t>> hot;
    for (const HotRead& record : read.hot) {
        const std::uint64_t i = record.words[1];
        ASSERT_LT(record.words[0], next.size());
        ASSERT_EQ(record.words[2], i + 1);
        ASSERT_EQ(record.words[4], i + 3);
        ASSERT_EQ(record.words[5], ~i);
        ASSERT_EQ(record.flags, static_cast<std::uint16_t>(i));
        hot[record.words[0]].push_back(i);
    }
    for (std::size_t t = 0; t < next.size(); ++t) {
        ASSERT_GE(next[t], progress.entries[t].load()) << "an entry that was appended is gone";
        const std::uint64_t records = progress.records[t].load();
        if (records == 0) {
            continue;
        }
        std::vector<std::uint64_t>& numbers = hot[t];
        ASSERT_FALSE(numbers.empty());
        std::sort(numbers.begin(), numbers.end());
        ASSERT_GE(numbers.back() + 1, records);
        // One slot may be in the middle of being written anew.
        ASSERT_GE(numbers.size() + 1, std::min<std::uint64_t>(records, capacity.ring_records));
        ASSERT_EQ(numbers.back() - numbers.front() + 1, numbers.size());
    }
    ASSERT_LE(read.lost.torn_entries, next.size());
    ASSERT_LE(read.lost.torn_records, next.size());
    ASSERT_EQ(read.lost.damage, "");
}

TEST(KilledProcess, LeavesEveryCommittedEntryWhole) {
    constexpr Capacity kCapacity{1 << 20, 3, 64};
    void* shared =
        mmap(nullptr, sizeof(Progress), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    ASSERT_NE(shared, MAP_FAILED);
    std::mt19937 random(20261201);
    std::uint64_t seen = 0;
    for (int round = 0; round < 200; ++round) {
        SCOPED_TRACE(round);
        const TemporaryDirectory directory;
        auto* progress = new (shared) Progress{};
        const pid_t child = fork();
        if (child == 0) {
            be_the_victim(directory.descriptor(), kCapacity, *progress);
        }
        while (progress->open.load() == 0 && waitpid(child, nullptr, WNOHANG) == 0) {
            std::this_thread::sleep_for(std::chrono::microseconds(50));
        }
        std::this_thread::sleep_for(std::chrono::microseconds(random() % 3000));
        ASSERT_EQ(kill(child, SIGKILL), 0);
        ASSERT_EQ(waitpid(child, nullptr, 0), child);
        const ReadResult result = read_recording(directory.file("r"));
        ASSERT_TRUE(result.recording) << result.error.why;
        check_survivors(*result.recording, *progress, kCapacity);
        if (HasFatalFailure()) {
            break;
        }
        seen += result.recording->entries.size();
    }
    EXPECT_GT(seen, 0U) << "no child lived long enough to write anything";
    munmap(shared, sizeof(Progress));
}

}  // namespace
}  // namespace cudiag
