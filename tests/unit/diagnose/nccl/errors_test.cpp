// nccl-system-error, nccl-cuda-error, nccl-remote-error: what follows from NCCL's words, and what
// does not.
#include "tests/unit/diagnose/nccl/facts.h"

namespace cudiag {
namespace {

using testing::advises;
using testing::cuda_error;
using testing::failed_of;
using testing::holds;
using testing::rank_failed_of;
using testing::remote_error;
using testing::said_of;
using testing::system_error;

// NVIDIA/nccl#2190: /dev/shm is not full.
TEST(NcclSystemError, OfAHandleReadAsAFileNameHasNothingToDoWithSpace) {
    const auto finding = said_of(system_error(
        "Error while attaching to shared memory segment /dev/shm/nccl-\x11\x02 (size 0)"));
    ASSERT_TRUE(finding);
    EXPECT_EQ(finding->slug, "nccl-system-error");
    EXPECT_EQ(finding->confidence, Confidence::likely);
    ASSERT_EQ(finding->fixes.size(), 1U);
    EXPECT_EQ(finding->fixes[0].command, "export NCCL_CUMEM_HOST_ENABLE=0");
    EXPECT_FALSE(advises(*finding, "shm-size"));
    // vllm-project/vllm#18831: a name and a size, and no such file. No cause is known.
    const auto other = said_of(
        system_error("Error while attaching to shared memory segment /dev/shm/nccl-ab12Cd (size "
                     "192814336), error: No such file or directory (2)"));
    ASSERT_TRUE(other);
    EXPECT_EQ(other->slug, "nccl-system-error");
    EXPECT_TRUE(other->fixes.empty());
}

// NVIDIA/nccl-tests#206.
TEST(NcclSystemError, OfLockedMemoryNamesTheLimitOfTheProcess) {
    const char* const words = "Call to ibv_reg_mr_iova2 failed with error Cannot allocate memory";
    Machine machine;
    machine.locked_memory = {.soft = 8192 * 1024ULL, .hard = 8192 * 1024ULL};
    const auto finding = said_of(system_error(words), machine);
    ASSERT_TRUE(finding);
    EXPECT_EQ(finding->evidence["locked_memory_limit"], 8192 * 1024);
    EXPECT_TRUE(advises(*finding, "ulimit -l unlimited"));
    EXPECT_TRUE(advises(*finding, "limits.conf counts for logins alone"));
    const auto unlimited = said_of(system_error(words));
    ASSERT_TRUE(unlimited);
    EXPECT_TRUE(unlimited->fixes.empty()) << "without a limit that is not the reason";
    EXPECT_EQ(unlimited->evidence["locked_memory_limit"], "unlimited");
}

// Run here: nvidia-nccl-cu13 2.29.7 with no descriptor left.
TEST(NcclSystemError, OfOpenFilesRaisesTheLimitOnlyAsFarAsItMay) {
    Machine machine;
    machine.open_files = {.soft = 1024, .hard = 524288};
    const std::string words = system_error("Call to getifaddrs failed: Too many open files");
    const auto finding = said_of(words, machine);
    ASSERT_TRUE(finding);
    ASSERT_EQ(finding->fixes.size(), 1U);
    EXPECT_EQ(finding->fixes[0].command, "ulimit -n \"$(ulimit -Hn)\"");
    machine.open_files.hard = 1024;
    const auto hard = said_of(words, machine);
    ASSERT_TRUE(hard);
    ASSERT_EQ(hard->fixes.size(), 1U);
    EXPECT_EQ(hard->fixes[0].command, "");
}

// hkproj/pytorch-transformer-distributed#1; NVIDIA/nccl#111; the words of 2.29.7 by its strings.
TEST(NcclSystemError, OfAConnectionNamesTheAddressAndProposesNothing) {
    for (const char* words :
         {"socketStartConnect: Connect to 192.168.19.14<52822> failed : No route to host",
          "ncclOsSocketStartConnect: connect to 192.168.19.14<52822> failed : No route to host"}) {
        const auto finding = said_of(system_error(words));
        ASSERT_TRUE(finding) << words;
        EXPECT_EQ(finding->title,
                  "NCCL could not connect to another rank at 192.168.19.14<52822>: No route to "
                  "host");
        EXPECT_TRUE(finding->fixes.empty());
    }
}

// NVIDIA/nccl#1838.
TEST(NcclCudaError, OfPeerAccessSaysThatItMayBeHostMemory) {
    const char* const words =
        "Cuda failure 217 'peer access is not supported between these two "
        "devices'";
    const auto finding = said_of(cuda_error(words, "2.27.3"));
    ASSERT_TRUE(finding);
    EXPECT_EQ(finding->slug, "nccl-cuda-error");
    EXPECT_EQ(finding->confidence, Confidence::likely);
    EXPECT_TRUE(holds(finding->evidence["meaning"], "host memory"));
    EXPECT_TRUE(advises(*finding, "NCCL_CUMEM_HOST_ENABLE=0"));
    EXPECT_TRUE(said_of(cuda_error(words, "2.18.3"))->fixes.empty())
        << "that release has no such variable";
    Process process = failed_of(cuda_error(words, "2.27.3"));
    process.environment["NCCL_CUMEM_HOST_ENABLE"] = "0";
    EXPECT_TRUE(said_of({process})->fixes.empty()) << "it is off already";
}

// openxla/xla#7201, NVIDIA/nccl#1410.
TEST(NcclCudaError, TellsCudasOwnErrorAndNoMore) {
    const auto memory = said_of(cuda_error("Cuda failure 2 'out of memory'"));
    ASSERT_TRUE(memory);
    EXPECT_TRUE(holds(memory->title, "no memory left on the GPU"));
    EXPECT_TRUE(memory->fixes.empty());
    const auto invalid = said_of(cuda_error("Cuda failure 1 'invalid argument'"));
    ASSERT_TRUE(invalid);
    EXPECT_EQ(invalid->evidence["code"], 1);
    EXPECT_EQ(invalid->evidence["code_name"], "cudaErrorInvalidValue");
    EXPECT_TRUE(invalid->fixes.empty());
    // Old releases give no number: by the words.
    EXPECT_EQ(said_of(cuda_error("Cuda failure 'no CUDA-capable device is detected'", "2.18.3"))
                  ->evidence["code"],
              100);
}

TEST(NcclRemoteError, PointsAtTheRankThatFailedBefore) {
    Process lost = rank_failed_of(
        remote_error("socketProgress: Connection closed by remote peer node2<42830>"), 1, 3);
    Process first = rank_failed_of("CUDA out of memory. Tried to allocate 2.00 GiB", 0, 3);
    first.end_time_ns = testing::kEnd - 5'000'000'000;
    Process later = rank_failed_of("KeyError: 'x'", 2, 3);
    later.end_time_ns = testing::kEnd + 5'000'000'000;
    const auto finding = said_of({lost, first, later});
    ASSERT_TRUE(finding);
    EXPECT_EQ(finding->evidence["failed_before"], first.pid);
    EXPECT_TRUE(holds(finding->title, "rank 0 (process 10) had failed before"));
    EXPECT_TRUE(finding->fixes.empty());
    const auto alone = said_of({lost, later});
    ASSERT_TRUE(alone);
    EXPECT_FALSE(alone->evidence.contains("failed_before"));
}

// Run here: nvidia-nccl-cu13 2.29.7; and the older words, pytorch/pytorch#38702.
TEST(NcclRemoteError, IsAConnectionThatWasRefused) {
    for (const std::string& words :
         {remote_error("ncclOsSocketStartConnect: connect to 10.38.10.112<21724> returned "
                       "Connection refused, exceeded error retry count after 2 attempts"),
          system_error("Connect to 10.38.10.112<21724> failed : Connection refused", "2.4.8")}) {
        const auto finding = said_of(words);
        ASSERT_TRUE(finding);
        EXPECT_EQ(finding->slug, "nccl-remote-error");
        EXPECT_TRUE(holds(finding->title, "10.38.10.112<21724> refused the connection"));
        EXPECT_TRUE(finding->fixes.empty());
    }
}

// Run here: nvidia-nccl-cu12 2.21.5, which names no address.
TEST(NcclRemoteError, IsAConnectionThatWasTriedInVain) {
    const auto finding = said_of(remote_error("socketStartConnect: exceeded retries (20000)"));
    ASSERT_TRUE(finding);
    EXPECT_EQ(finding->slug, "nccl-remote-error");
    EXPECT_EQ(finding->title, "NCCL gave up to connect to another rank (retries exceeded)");
}

// NVIDIA/nccl#795: the lost rank comes out as an internal error.
TEST(NcclRemoteError, IsKnownByNcclsWordsWhateverItsResult) {
    const auto finding = said_of(testing::torch_words(
        "internal error - please report this issue to the NCCL developers",
        "ncclInternalError: Internal check failed.",
        "Net : Call to recv from 10.200.84.247<58355> failed : Broken pipe", "2.14.3"));
    ASSERT_TRUE(finding);
    EXPECT_EQ(finding->slug, "nccl-remote-error");
    EXPECT_EQ(finding->evidence["result"], "ncclInternalError");
}

TEST(NcclVersionMix, OfTwoRanksNamesBothReleases) {
    const auto finding = said_of(testing::invalid_usage(
        "Mismatched NCCL version detected : rank 0 version 22105 rank 1 version 22703"));
    ASSERT_TRUE(finding);
    EXPECT_EQ(finding->slug, "nccl-version-mix");
    EXPECT_TRUE(holds(finding->title, "rank 0 has NCCL 2.21.5 and rank 1 NCCL 2.27.3"));
    EXPECT_TRUE(finding->fixes.empty());
}

// The words of 2.29.7 without a driver, run here.
TEST(NcclJudge, TellsNcclsFailureAsTheConsequenceOfACudaThatCannotStart) {
    Facts facts;
    facts.processes = {failed_of(
        cuda_error("Cuda failure 'CUDA driver version is insufficient for CUDA runtime version'"))};
    facts.processes[0].cuda_driver = CudaDriver{.path = "", .version = 0};
    const std::vector<Finding> findings = judge(facts, Machine{});
    const auto of = [&](const std::string& slug) {
        return std::find_if(findings.begin(), findings.end(),
                            [&](const Finding& finding) { return finding.slug == slug; });
    };
    ASSERT_NE(of("nccl-cuda-error"), findings.end());
    ASSERT_NE(of("cuda-no-driver"), findings.end());
    EXPECT_EQ(of("cuda-no-driver")->cause_of, std::vector<std::string>{of("nccl-cuda-error")->id});
}

TEST(NcclJudge, LinksALostRankToWhatTheOtherOneFailedOf) {
    Facts facts;
    Process first =
        rank_failed_of(testing::invalid_usage(
                           "Duplicate GPU detected : rank 0 and rank 1 both on CUDA device 7000"),
                       0, 2);
    first.end_time_ns = testing::kEnd - 5'000'000'000;
    facts.processes = {first, rank_failed_of(remote_error("socketProgress: Connection closed by "
                                                          "remote peer node2<42830>"),
                                             1, 2)};
    const std::vector<Finding> findings = judge(facts, Machine{});
    ASSERT_EQ(findings.size(), 2U);
    EXPECT_EQ(findings[0].slug, "nccl-duplicate-gpu");
    EXPECT_EQ(findings[0].rank, 0);
    EXPECT_EQ(findings[0].cause_of, std::vector<std::string>{findings[1].id});
    EXPECT_EQ(findings[1].rank, 1);
}

TEST(NcclJudge, TellsWhatEveryRankSaysOnce) {
    const auto of_ranks = [](const std::string& zero, const std::string& one) {
        Facts facts;
        facts.processes = {rank_failed_of(zero, 0, 2), rank_failed_of(one, 1, 2)};
        facts.processes[0].exceptions[0].time_ns += 500;
        return judge(facts, Machine{});
    };
    const auto same =
        of_ranks(testing::invalid_usage(
                     "Duplicate GPU detected : rank 0 and rank 1 both on CUDA device 7000"),
                 testing::invalid_usage(
                     "Duplicate GPU detected : rank 1 and rank 0 both on CUDA device 7000"));
    ASSERT_EQ(same.size(), 2U);
    EXPECT_EQ(same[0].rank, 1) << "it was the first";
    EXPECT_EQ(same[0].cause_of, std::vector<std::string>{same[1].id});
    EXPECT_TRUE(same[1].cause_of.empty());
    const auto different = of_ranks(system_error("Call to bind failed: Address already in use"),
                                    system_error("Call to bind failed: Permission denied"));
    ASSERT_EQ(different.size(), 2U);
    EXPECT_TRUE(different[0].cause_of.empty());
    EXPECT_TRUE(different[1].cause_of.empty());
}

}  // namespace
}  // namespace cudiag
