// Which launches come into question for an error that some later call reported.
#include "diagnose/cuda/suspects.h"

#include "tests/unit/diagnose/cuda/running_facts.h"

namespace cudiag {
namespace {

using testing::launched;
using testing::reported;
using testing::trainer;

constexpr std::uint64_t kFirstStream = 0x100;
constexpr std::uint64_t kSecondStream = 0x200;

Process with(std::vector<CudaLaunch> launches) {
    Process process = trainer();
    process.cuda_failures = {reported()};
    process.launches = std::move(launches);
    return process;
}

Suspects suspects_in(const Process& process) {
    const auto c = running_case_of(process);
    EXPECT_TRUE(c);
    return c ? suspects_of(*c) : Suspects{};
}

std::vector<std::string> kernels(const Suspects& suspects) {
    std::vector<std::string> names;
    for (const CudaLaunch* launch : suspects.launches) {
        names.push_back(launch->kernel);
    }
    return names;
}

CudaLaunch marked(CudaLaunch launch, std::uint32_t mark) {
    launch.mark = mark;
    return launch;
}

CudaLaunch finished(CudaLaunch launch) {
    launch.done = true;
    return launch;
}

using Names = std::vector<std::string>;

}  // namespace

TEST(Suspects, AreAllThatWerePendingTheOldestFirst) {
    const Process process =
        with({launched("b", 400, kSecondStream), launched("a", 500, kFirstStream),
              launched("d", 200, kSecondStream), launched("c", 300, kFirstStream)});
    const Suspects suspects = suspects_in(process);
    EXPECT_EQ(suspects.pinned, Pinned::no);
    EXPECT_EQ(kernels(suspects), (Names{"a", "b", "c", "d"}));
    EXPECT_EQ(suspects.pending, 4U);
    EXPECT_EQ(suspects.streams, 2U);
    EXPECT_FALSE(suspects.lost);
}

TEST(Suspects, AreNotWhatWasFinishedOrCapturedOrLaunchedLater) {
    CudaLaunch captured = launched("captured", 300);
    captured.capturing = true;
    CudaLaunch later = launched("later", 0);
    later.time_ns += 1000;
    const Process process =
        with({finished(launched("finished", 400)), captured, launched("left", 200), later});
    const Suspects suspects = suspects_in(process);
    EXPECT_EQ(kernels(suspects), Names{"left"});
    EXPECT_EQ(suspects.pinned, Pinned::only_one);
    EXPECT_EQ(suspects.pending, 1U);
}

TEST(Suspects, OfSyncIsTheLaunchThatWasWaitedFor) {
    CudaLaunch other_thread = launched("a", 100);
    other_thread.tid = 9;
    Process process =
        with({launched("a", 500), launched("a", 300), launched("b", 200), other_thread});
    process.cuda_failures[0].waited = true;
    process.cuda_failures[0].handle = process.launches[0].handle;
    process.launches_lost = 1000;
    const Suspects suspects = suspects_in(process);
    EXPECT_EQ(suspects.pinned, Pinned::waited);
    ASSERT_EQ(suspects.launches.size(), 1U);
    EXPECT_EQ(suspects.launches[0], &process.launches[1])
        << "the last of this kernel in this thread";
    EXPECT_FALSE(suspects.lost) << "older ones do not come into question";

    process.cuda_failures[0].handle = 1;
    EXPECT_EQ(suspects_in(process).pinned, Pinned::no) << "its record was overwritten";
}

TEST(Suspects, OfTrackIsTheFirstUnfinishedOfEachStream) {
    Process process = with({marked(finished(launched("done", 900, kFirstStream)), 1),
                            marked(launched("y", 500, kSecondStream), 1),
                            marked(launched("x", 600, kFirstStream), 2),
                            marked(launched("later", 300, kFirstStream), 3)});
    process.tracked = true;
    process.launches_lost = 1000;
    const Suspects suspects = suspects_in(process);
    EXPECT_EQ(suspects.pinned, Pinned::marked);
    EXPECT_EQ(kernels(suspects), (Names{"x", "y"}));
    EXPECT_EQ(suspects.pending, 3U);
    EXPECT_EQ(suspects.streams, 2U);
    EXPECT_FALSE(suspects.lost) << "the GPU itself told how far it was";
}

TEST(Suspects, OfTrackAreAllWhereAStreamHadNoMarks) {
    Process process =
        with({marked(launched("x", 600, kFirstStream), 2),
              marked(launched("y", 500, kFirstStream), 3), launched("z", 400, kSecondStream)});
    process.tracked = true;
    const Suspects suspects = suspects_in(process);
    EXPECT_EQ(suspects.pinned, Pinned::no);
    EXPECT_EQ(kernels(suspects), (Names{"x", "y", "z"}));

    process.launches.pop_back();
    process.tracked = false;
    EXPECT_EQ(suspects_in(process).pinned, Pinned::no) << "marks that nobody wrote";
}

TEST(Suspects, DefaultStreamsOfThreadsAreStreamsOfTheirOwn) {
    CudaLaunch first = marked(launched("x", 500, kPerThreadStream), 1);
    CudaLaunch second = marked(launched("y", 400, kPerThreadStream), 1);
    second.tid = 9;
    Process process = with({first, second});
    process.tracked = true;
    EXPECT_EQ(suspects_in(process).streams, 2U);
    EXPECT_EQ(suspects_in(process).launches.size(), 2U);

    process.launches[0].stream = process.launches[1].stream = kFirstStream;
    EXPECT_EQ(suspects_in(process).streams, 1U);
    EXPECT_EQ(suspects_in(process).launches.size(), 1U) << "one stream, used by two threads";
}

TEST(Suspects, SayWhereOlderRecordsWereOverwritten) {
    Process process = with({launched("a", 500)});
    process.launches_lost = 5;
    Suspects suspects = suspects_in(process);
    EXPECT_TRUE(suspects.lost);
    EXPECT_EQ(suspects.pinned, Pinned::no) << "one is left, and more may have been";

    process.launches.insert(process.launches.begin(), finished(launched("done", 900)));
    suspects = suspects_in(process);
    EXPECT_FALSE(suspects.lost) << "what is older than a finished one was finished";
    EXPECT_EQ(suspects.pinned, Pinned::only_one);
}

TEST(Suspects, AreNoneWhereNoLaunchWasSeen) {
    EXPECT_EQ(suspects_in(with({})).pinned, Pinned::unseen);
    const Process process = with({finished(launched("a", 500))});
    EXPECT_EQ(suspects_in(process).pinned, Pinned::unseen);
    EXPECT_EQ(suspects_in(process).pending, 0U);
}

TEST(Suspects, WithoutTheCallAreAllThatWereNotFinished) {
    Process process = with({launched("a", 500), launched("b", 0)});
    process.launches[1].time_ns = testing::kEnd;
    process.cuda_failures.clear();
    process.exceptions = {testing::raised("CUDA error: an illegal memory access was encountered")};
    EXPECT_EQ(suspects_in(process).pending, 2U);
}

}  // namespace cudiag
