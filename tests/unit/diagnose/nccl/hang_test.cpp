#include "tests/unit/diagnose/nccl/facts.h"

namespace cudiag {
namespace {

using testing::failed_of;
using testing::holds;
using testing::rank_failed_of;
using testing::said_of;

// The form of torch 2.13.0; numbers as in hiyouga/LlamaFactory#7396.
std::string watchdog(int rank, const std::string& sequence, const std::string& collective,
                     const std::string& in, const std::string& out) {
    return "[Rank " + std::to_string(rank) +
           "] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=" + sequence +
           ", OpType=" + collective + ", NumelIn=" + in + ", NumelOut=" + out +
           ", Timeout(ms)=600000) ran for 600060 milliseconds before timing out.";
}

TEST(NcclHang, NamesTheCollectiveAndDoesNotGuess) {
    const auto finding = said_of(watchdog(0, "1580", "ALLREDUCE", "466119168", "466119168"));
    ASSERT_TRUE(finding);
    EXPECT_EQ(finding->slug, "nccl-hang");
    EXPECT_EQ(finding->title,
              "rank 0 waited 600 s in vain for the other ranks in ALLREDUCE number 1580 of "
              "466119168 elements");
    EXPECT_EQ(finding->evidence["sequence"], "1580");
    EXPECT_EQ(finding->evidence["timeout_ms"], "600000");
    EXPECT_EQ(finding->evidence["first_difference"], "none seen");
    EXPECT_EQ(finding->confidence, Confidence::likely);
    EXPECT_TRUE(finding->fixes.empty());
}

// torch's watchdog is a thread of C++: nobody catches its exception, and the process is aborted.
TEST(NcclHang, IsToldOfTheWatchdogsOwnExceptionAndExplainsTheAbort) {
    Process process = failed_of(
        "[PG ID 0 PG GUID 0(default_pg) Rank 0] Process group watchdog "
        "thread terminated with exception: " +
        watchdog(0, "3", "ALLREDUCE", "4", "4") +
        "\nException raised from checkTimeout at ProcessGroupNCCL.cpp");
    process.exceptions.front().type = "c10::DistBackendError";
    process.exceptions.front().native = true;
    process.end = EndHow::abort;
    Facts facts;
    facts.processes = {process};
    const std::vector<Finding> findings = judge(facts, Machine{});
    ASSERT_EQ(findings.size(), 2U);
    EXPECT_EQ(findings[0].slug, "nccl-hang");
    EXPECT_EQ(findings[0].cause_of, std::vector<std::string>{findings[1].id});
    EXPECT_EQ(findings[1].slug, "process-killed");
    EXPECT_TRUE(holds(findings[1].title, "nobody caught c10::DistBackendError: [PG ID 0"));
}

// xljh0520/JOTR#4: 41 rows on one rank, 40 on the other.
TEST(NcclHang, SetsTheRanksSideBySide) {
    const auto finding =
        said_of({rank_failed_of(watchdog(0, "12", "ALLGATHER", "41", "82"), 0, 2),
                 rank_failed_of(watchdog(1, "12", "ALLGATHER", "40", "80"), 1, 2)});
    ASSERT_TRUE(finding);
    EXPECT_EQ(finding->evidence["waited"].size(), 2U);
    EXPECT_EQ(finding->evidence["first_difference"],
              "rank 0 was in ALLGATHER number 12 of 41 elements, rank 1 in ALLGATHER number 12 of "
              "40 elements");
    ASSERT_EQ(finding->fixes.size(), 1U);
    EXPECT_EQ(finding->fixes[0].command, "export TORCH_DISTRIBUTED_DEBUG=DETAIL");
}

// pytorch/pytorch#118369: rank 7 is far behind; older words, without sizes.
TEST(NcclHang, SeesARankThatIsBehind) {
    const auto words = [](int rank, const char* sequence) {
        return "[Rank " + std::to_string(rank) +
               "] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=" + sequence +
               ", OpType=ALLREDUCE, Timeout(ms)=1800000) ran for 25624887 milliseconds before "
               "timing out.";
    };
    const auto finding =
        said_of({rank_failed_of(words(0, "96120"), 0, 8), rank_failed_of(words(7, "64088"), 7, 8)});
    ASSERT_TRUE(finding);
    EXPECT_EQ(finding->evidence["first_difference"],
              "rank 0 was in ALLREDUCE number 96120, rank 7 in ALLREDUCE number 64088");
}

TEST(NcclHang, TakesRanksOfTheSameCallForNoDifference) {
    const auto finding = said_of({rank_failed_of(watchdog(0, "5", "ALLREDUCE", "1", "1"), 0, 2),
                                  rank_failed_of(watchdog(1, "5", "ALLREDUCE", "1", "1"), 1, 2)});
    ASSERT_TRUE(finding);
    EXPECT_EQ(finding->evidence["first_difference"], "none seen");
    EXPECT_TRUE(finding->fixes.empty());
    // A scatter's root brings more than the others: that is no difference.
    const auto scatter = said_of({rank_failed_of(watchdog(0, "5", "SCATTER", "8", "4"), 0, 2),
                                  rank_failed_of(watchdog(1, "5", "SCATTER", "0", "4"), 1, 2)});
    ASSERT_TRUE(scatter);
    EXPECT_TRUE(scatter->fixes.empty());
}

TEST(NcclHang, IsKnownAsTheReasonWhyACommunicatorWasAborted) {
    const auto finding =
        said_of("NCCL communicator was aborted on rank 1.  Original reason for failure was: " +
                watchdog(1, "7", "BROADCAST", "3", "3"));
    ASSERT_TRUE(finding);
    EXPECT_EQ(finding->slug, "nccl-hang");
}

}  // namespace
}  // namespace cudiag
