#include "record/writer.h"

#include <grp.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <limits>
#include <map>
#include <thread>

#include "tests/unit/record/recording_file.h"

namespace cudiag {
namespace {

using testing::kCannotRunHere;
using testing::kIdentity;
using testing::kLogBegin;
using testing::OpenRecording;
using testing::status_of_child;
using testing::TemporaryDirectory;

constexpr Capacity kSmall{4096, 1, 8};
constexpr std::uint64_t kWords[6] = {1, 2, 3, 4, 5, 6};

// What a child answers about an attempt to open: the result itself, or a breach of the contract.
constexpr int kLeftBehind = 90;
constexpr int kWrongError = 91;

int attempt(const TemporaryDirectory& directory, const Capacity& capacity, int expected_error) {
    Writer writer;
    int error = -1;
    const OpenResult result = writer.open(directory.descriptor(), "r", capacity, kIdentity, &error);
    if (result != OpenResult::ok && (directory.files() != 0 || writer.is_open())) {
        return kLeftBehind;
    }
    return error == expected_error ? static_cast<int>(result) : kWrongError;
}

int code(OpenResult result) {
    return static_cast<int>(result);
}

TEST(Writer, AllocatesEveryBlockBeforeUse) {
    const OpenRecording recording({1 << 20, 2, 64});

    struct stat status {};

    ASSERT_EQ(stat(recording.path().c_str(), &status), 0);
    EXPECT_GE(status.st_blocks * 512, status.st_size);
    EXPECT_EQ(status.st_mode & 07777, 0600U);
}

TEST(Writer, SaysNoSpaceOnAFullFileSystemAndLeavesNothingBehind) {
    const TemporaryDirectory directory;
    const int status = status_of_child([&] {
        // A mount namespace of the child's own: nothing is left mounted, whatever happens.
        const int flags = geteuid() == 0 ? CLONE_NEWNS : CLONE_NEWUSER | CLONE_NEWNS;
        if (unshare(flags) != 0 || mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0 ||
            mount("tmpfs", directory.path().c_str(), "tmpfs", 0, "size=64k") != 0) {
            return kCannotRunHere;
        }
        Writer writer;
        int error = 0;
        const int full = ::open(directory.path().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        const OpenResult result = writer.open(full, "r", {1 << 20, 0, 0}, kIdentity, &error);
        if (directory.files() != 0) {
            return kLeftBehind;
        }
        return error == ENOSPC ? code(result) : kWrongError;
    });
    if (status == kCannotRunHere) {
        GTEST_SKIP() << "no mount namespaces here";
    }
    EXPECT_EQ(status, code(OpenResult::no_space));
}

TEST(Writer, LooksAtTheFileSizeLimitInsteadOfRaisingSigxfsz) {
    const TemporaryDirectory directory;
    const int status = status_of_child([&] {
        const rlimit limit{64 << 10, 64 << 10};
        return setrlimit(RLIMIT_FSIZE, &limit) != 0 ? kCannotRunHere
                                                    : attempt(directory, Capacity{}, EFBIG);
    });
    EXPECT_EQ(status, code(OpenResult::over_limit));
}

TEST(Writer, OpensUnderAFileSizeLimitThatIsJustLargeEnough) {
    const TemporaryDirectory directory;
    const int status = status_of_child([&] {
        const rlimit limit{kLogBegin + 8192, kLogBegin + 8192};
        return setrlimit(RLIMIT_FSIZE, &limit) != 0 ? kCannotRunHere
                                                    : attempt(directory, {8192, 0, 0}, 0);
    });
    EXPECT_EQ(status, code(OpenResult::ok));
}

TEST(Writer, NeverTouchesAFileThatExists) {
    const OpenRecording first(kSmall);
    const auto before = testing::contents(first.path());
    Writer second;
    int error = 0;
    EXPECT_EQ(second.open(first.directory.descriptor(), "r", kSmall, kIdentity, &error),
              OpenResult::exists);
    EXPECT_EQ(error, EEXIST);
    EXPECT_FALSE(second.is_open());
    EXPECT_EQ(testing::contents(first.path()), before);
}

TEST(Writer, FollowsNoSymbolicLink) {
    const TemporaryDirectory directory;
    ASSERT_EQ(symlink("elsewhere", directory.file("r").c_str()), 0);
    Writer writer;
    int error = 0;
    EXPECT_EQ(writer.open(directory.descriptor(), "r", kSmall, kIdentity, &error),
              OpenResult::exists);
    EXPECT_FALSE(std::filesystem::exists(directory.file("elsewhere")));
}

TEST(Writer, SaysNoPermissionWhereItMayNotWrite) {
    const TemporaryDirectory directory;
    ASSERT_EQ(chmod(directory.path().c_str(), 0555), 0);
    const int status = status_of_child([&] {
        constexpr id_t kNobody = 65534;
        if (geteuid() == 0 &&
            (setgroups(0, nullptr) != 0 || setgid(kNobody) != 0 || setuid(kNobody) != 0)) {
            return kCannotRunHere;
        }
        return attempt(directory, kSmall, EACCES);
    });
    if (status == kCannotRunHere) {
        GTEST_SKIP() << "cannot become nobody here";
    }
    EXPECT_EQ(status, code(OpenResult::no_permission));
}

TEST(Writer, SaysFailedAndWhyWhenThereIsNoDirectory) {
    Writer writer;
    int error = 0;
    EXPECT_EQ(writer.open(-1, "r", kSmall, kIdentity, &error), OpenResult::failed);
    EXPECT_EQ(error, EBADF);
}

TEST(Writer, DoesNothingBeforeOpenAndAfterForget) {
    Writer writer;
    const FieldValue field = FieldValue::of(Field::name, "x");
    EXPECT_FALSE(writer.append(EntryKind::variable, &field, 1));
    EXPECT_EQ(writer.claim_ring(), nullptr);
    writer.mark_end(EndHow::exit, 1);

    OpenRecording recording(kSmall);
    recording.writer.forget();
    EXPECT_FALSE(recording.writer.append(EntryKind::variable, &field, 1));
    recording.writer.mark_end(EndHow::exit, 1);
    const Recording read = recording.read();
    EXPECT_TRUE(read.entries.empty());
    EXPECT_EQ(read.header.end_how, static_cast<std::uint32_t>(EndHow::none));
}

TEST(Writer, KeepsErrno) {
    OpenRecording recording(kSmall);
    Writer& writer = recording.writer;
    const FieldValue small = FieldValue::of(Field::index, std::uint64_t{1});
    const std::string large(8192, 'x');
    const FieldValue too_large = FieldValue::of(Field::text, large.c_str());
    constexpr int kMine = 4242;

    errno = kMine;
    EXPECT_TRUE(writer.append(EntryKind::variable, &small, 1));
    EXPECT_EQ(errno, kMine);
    EXPECT_FALSE(writer.append(EntryKind::variable, &too_large, 1));
    EXPECT_EQ(errno, kMine);
    RingHead* ring = writer.claim_ring();
    ASSERT_NE(ring, nullptr);
    EXPECT_EQ(errno, kMine);
    EXPECT_EQ(writer.claim_ring(), nullptr);
    EXPECT_EQ(errno, kMine);
    writer.append_hot(ring, 1, 2, kWords);
    EXPECT_EQ(errno, kMine);
    writer.mark_end(EndHow::exit, 1);
    EXPECT_EQ(errno, kMine);
    Writer second;
    int error = 0;
    EXPECT_EQ(second.open(recording.directory.descriptor(), "r", kSmall, kIdentity, &error),
              OpenResult::exists);
    EXPECT_EQ(errno, kMine);
}

TEST(Writer, CountsWhatAFullLogCannotTakeAndKeepsWhatWasThere) {
    OpenRecording recording({4096, 0, 0});
    std::uint64_t taken = 0;
    constexpr std::uint64_t kAttempts = 200;
    for (std::uint64_t i = 0; i < kAttempts; ++i) {
        const FieldValue field = FieldValue::of(Field::index, i);
        taken += recording.writer.append(EntryKind::variable, &field, 1) ? 1 : 0;
    }
    const Recording read = recording.read();
    // 24 bytes of head, 8 of field, 8 of number.
    EXPECT_EQ(taken, 4096U / 40);
    EXPECT_EQ(read.entries.size(), taken);
    EXPECT_EQ(read.lost.dropped_entries, kAttempts - taken);
    EXPECT_EQ(read.lost.torn_entries, 0U);
    EXPECT_EQ(read.lost.damage, "");
    for (std::uint64_t i = 0; i < read.entries.size(); ++i) {
        EXPECT_EQ(read.entries[i].number(Field::index), i);
    }
}

TEST(Writer, LosesOnlyTheEntryThatIsTooLarge) {
    OpenRecording recording({4096, 0, 0});
    const std::string large(5000, 'x');
    const std::array values = {FieldValue::of(Field::text, large.c_str()),
                               FieldValue::of(Field::text, "before"),
                               FieldValue::of(Field::text, "after")};
    EXPECT_TRUE(recording.writer.append(EntryKind::variable, &values[1], 1));
    EXPECT_FALSE(recording.writer.append(EntryKind::process, values.data(), 1));
    EXPECT_TRUE(recording.writer.append(EntryKind::variable, &values[2], 1));
    const Recording read = recording.read();
    ASSERT_EQ(read.entries.size(), 2U);
    EXPECT_EQ(read.entries[1].text(Field::text), "after");
    EXPECT_EQ(read.lost.dropped_entries, 1U);
    EXPECT_EQ(read.lost.torn_entries, 0U);
}

TEST(Writer, DropsAFieldWhosePaddedLengthOverflows32Bits) {
    OpenRecording recording({4096, 0, 0});
    const FieldValue monstrous =
        FieldValue::of(Field::text, "x", std::numeric_limits<std::uint32_t>::max());
    EXPECT_FALSE(recording.writer.append(EntryKind::variable, &monstrous, 1));
    EXPECT_EQ(recording.read().lost.dropped_entries, 1U);
}

TEST(Writer, TakesAnAbsentTextAsAnEmptyOne) {
    OpenRecording recording(kSmall);
    const std::array fields = {FieldValue::of(Field::text, static_cast<const char*>(nullptr)),
                               FieldValue::of(Field::path, nullptr, 100)};
    ASSERT_TRUE(recording.writer.append(EntryKind::variable, fields.data(), fields.size()));
    const Recording read = recording.read();
    ASSERT_EQ(read.entries.size(), 1U);
    ASSERT_EQ(read.entries[0].fields.size(), 2U);
    EXPECT_EQ(read.entries[0].fields[0].text, "");
    EXPECT_EQ(read.entries[0].fields[1].text, "");
}

TEST(Writer, EntriesOfEightThreadsAreAllWholeAndInOrder) {
    constexpr std::uint64_t kThreads = 8;
    constexpr std::uint64_t kEach = 2000;
    OpenRecording recording({4 << 20, 0, 0});
    std::vector<std::thread> threads;
    for (std::uint64_t t = 0; t < kThreads; ++t) {
        threads.emplace_back([&recording, t] {
            for (std::uint64_t i = 0; i < kEach; ++i) {
                // Lengths differ, so that a mix-up of two entries shows.
                const std::string text(i % 61, static_cast<char>('a' + t));
                const std::array fields = {FieldValue::of(Field::index, t),
                                           FieldValue::of(Field::status, i),
                                           FieldValue::of(Field::text, text.c_str())};
                EXPECT_TRUE(recording.writer.append(EntryKind::variable, fields.data(), 3));
            }
        });
    }
    for (std::thread& thread : threads) {
        thread.join();
    }
    const Recording read = recording.read();
    EXPECT_FALSE(read.lost.any());
    ASSERT_EQ(read.entries.size(), kThreads * kEach);
    std::array<std::uint64_t, kThreads> next{};
    std::map<std::uint64_t, std::uint32_t> tids;
    for (const EntryRead& entry : read.entries) {
        const std::uint64_t t = entry.number(Field::index).value_or(kThreads);
        ASSERT_LT(t, kThreads);
        ASSERT_EQ(entry.number(Field::status), next[t]);
        ASSERT_EQ(entry.text(Field::text), std::string(next[t] % 61, static_cast<char>('a' + t)));
        ASSERT_EQ(entry.tid, tids.try_emplace(t, entry.tid).first->second);
        ++next[t];
    }
    EXPECT_EQ(tids.size(), kThreads);
}

class RingOf : public ::testing::TestWithParam<std::uint32_t> {};

TEST_P(RingOf, KeepsTheNewestAndCountsTheOverwritten) {
    constexpr std::uint64_t kAppended = 21;
    OpenRecording recording({4096, 2, GetParam()});
    RingHead* ring = recording.writer.claim_ring();
    ASSERT_NE(ring, nullptr);
    for (std::uint64_t i = 0; i < kAppended; ++i) {
        const std::uint64_t words[6] = {i, i * 3, 0, 0, 0, ~i};
        recording.writer.append_hot(ring, 7, static_cast<std::uint16_t>(i), words);
    }
    const Recording read = recording.read();
    const std::uint64_t kept = std::min<std::uint64_t>(kAppended, GetParam());
    EXPECT_EQ(read.lost.overwritten, kAppended - kept);
    EXPECT_FALSE(read.lost.any());
    ASSERT_EQ(read.hot.size(), kept);
    for (std::uint64_t i = 0; i < kept; ++i) {
        const std::uint64_t number = kAppended - kept + i;
        EXPECT_EQ(read.hot[i].kind, 7U);
        EXPECT_EQ(read.hot[i].flags, number);
        EXPECT_EQ(read.hot[i].words[0], number);
        EXPECT_EQ(read.hot[i].words[1], number * 3);
        EXPECT_EQ(read.hot[i].words[5], ~number);
        EXPECT_EQ(read.hot[i].tid, ring->tid);
    }
}

INSTANTIATE_TEST_SUITE_P(Writer, RingOf, ::testing::Values(1U, 8U, 16U, 32U));

class RefusedRing : public ::testing::TestWithParam<std::uint32_t> {};

TEST_P(RefusedRing, LeavesNothingBehind) {
    EXPECT_EQ(attempt(TemporaryDirectory(), {4096, 2, GetParam()}, EINVAL),
              code(OpenResult::failed));
    OpenRecording recording({4096, 0, 0});
    int error = 0;
    EXPECT_EQ(
        recording.writer.add_rings(recording.directory.descriptor(), "r", 2, GetParam(), &error),
        OpenResult::failed);
    EXPECT_EQ(recording.writer.claim_ring(), nullptr);
}

// No power of two: a record's place is found with a mask.
INSTANTIATE_TEST_SUITE_P(Writer, RefusedRing, ::testing::Values(3U, 6U, 21U, 4095U));

TEST(Writer, GivesNoRingsWithoutRecords) {
    OpenRecording recording({4096, 2, 0});
    EXPECT_EQ(recording.writer.claim_ring(), nullptr);
    EXPECT_EQ(recording.read().lost.damage, "");
}

TEST(Writer, CountsThreadsThatFoundNoRing) {
    OpenRecording recording({4096, 2, 8});
    EXPECT_NE(recording.writer.claim_ring(), nullptr);
    EXPECT_NE(recording.writer.claim_ring(), nullptr);
    EXPECT_EQ(recording.writer.claim_ring(), nullptr);
    EXPECT_EQ(recording.read().lost.refused_threads, 1U);
}

TEST(Writer, AddsRingsToAnOpenRecordingOfWhichTheLastIsShared) {
    OpenRecording recording({4096, 0, 0});
    Writer& writer = recording.writer;
    EXPECT_FALSE(writer.has_rings());
    int error = 0;
    ASSERT_EQ(writer.add_rings(recording.directory.descriptor(), "r", 3, 8, &error),
              OpenResult::ok);
    EXPECT_EQ(writer.add_rings(recording.directory.descriptor(), "r", 3, 8, &error),
              OpenResult::failed)
        << "once";
    RingHead* const first = writer.claim_ring();
    RingHead* const second = writer.claim_ring();
    RingHead* const shared = writer.claim_ring();
    ASSERT_NE(shared, nullptr);
    EXPECT_NE(first, second);
    EXPECT_EQ(shared->tid, kSharedRing);
    EXPECT_EQ(writer.claim_ring(), shared);
    writer.append_hot(first, 1, 0, kWords);
    constexpr int kThreads = 4;
    constexpr std::uint64_t kEach = 1000;
    std::vector<std::thread> threads;
    for (int i = 0; i < kThreads; ++i) {
        threads.emplace_back([&] {
            for (std::uint64_t j = 0; j < kEach; ++j) {
                writer.append_hot(shared, 2, 0, kWords);
            }
        });
    }
    for (std::thread& thread : threads) {
        thread.join();
    }
    const Recording read = recording.read();
    EXPECT_EQ(read.lost.damage, "");
    EXPECT_EQ(read.lost.refused_threads, 0U);
    EXPECT_EQ(read.lost.overwritten, kThreads * kEach - 8);
    EXPECT_EQ(std::count_if(read.hot.begin(), read.hot.end(),
                            [](const HotRead& hot) { return hot.kind == 1; }),
              1);
}

TEST(Writer, GoesOnWithoutRingsThatFindNoRoom) {
    OpenRecording recording({4096, 0, 0});
    const int descriptor = recording.directory.descriptor();
    const int status = status_of_child([&] {
        const rlimit limit{16384, 16384};
        int error = 0;
        if (setrlimit(RLIMIT_FSIZE, &limit) != 0) {
            return kCannotRunHere;
        }
        return recording.writer.add_rings(descriptor, "r", 2, 1024, &error) ==
                           OpenResult::over_limit &&
                       error == EFBIG && recording.writer.claim_ring() == nullptr
                   ? 0
                   : 1;
    });
    EXPECT_EQ(status, 0);
    const FieldValue field = FieldValue::of(Field::name, "x");
    EXPECT_TRUE(recording.writer.append(EntryKind::variable, &field, 1));
    EXPECT_EQ(recording.read().lost.damage, "");
}

TEST(Writer, HoldsWhatStreamsHaveFinished) {
    OpenRecording recording({4096, 0, 0});
    ProgressSlot* const slots = recording.writer.progress();
    ASSERT_NE(slots, nullptr);
    slots[0] = {.context = 1, .stream = 2, .launched = 30, .finished = 20, .reserved = 0};
    slots[5] = {.context = 1, .stream = 3, .launched = 1, .finished = 0, .reserved = 0};
    const Recording read = recording.read();
    ASSERT_EQ(read.progress.size(), 2U);
    EXPECT_EQ(read.progress[0].finished, 20U);
    EXPECT_EQ(read.progress[1].stream, 3U);
    EXPECT_TRUE(read.entries.empty());
}

struct EndCase {
    EndHow first, second, remembered;
};

class MarkEnd : public ::testing::TestWithParam<EndCase> {};

TEST_P(MarkEnd, FirstWinsExceptAfterExecAndAbort) {
    OpenRecording recording(kSmall);
    recording.writer.mark_end(GetParam().first, 3);
    recording.writer.mark_end(GetParam().second, 4);
    const Recording read = recording.read();
    EXPECT_EQ(static_cast<EndHow>(read.header.end_how), GetParam().remembered);
    EXPECT_EQ(read.header.end_status, GetParam().remembered == GetParam().first ? 3 : 4);
    EXPECT_GE(read.header.end_realtime_ns, read.header.open_realtime_ns);
}

INSTANTIATE_TEST_SUITE_P(
    Writer, MarkEnd,
    ::testing::Values(EndCase{EndHow::exit, EndHow::exit_now, EndHow::exit},
                      EndCase{EndHow::exit_now, EndHow::exit, EndHow::exit_now},
                      EndCase{EndHow::quick_exit, EndHow::abort, EndHow::quick_exit},
                      EndCase{EndHow::exec, EndHow::exit, EndHow::exit},
                      EndCase{EndHow::exec, EndHow::none, EndHow::none},
                      EndCase{EndHow::abort, EndHow::exit_now, EndHow::exit_now}));

}  // namespace
}  // namespace cudiag
