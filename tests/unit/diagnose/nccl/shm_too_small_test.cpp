#include "tests/unit/diagnose/nccl/facts.h"

namespace cudiag {
namespace {

using testing::advises;
using testing::said_of;
using testing::system_error;

constexpr std::uint64_t kMega = 1ULL << 20U;

Machine with_shm(std::uint64_t size, std::uint64_t free, const std::string& container = "") {
    Machine machine;
    machine.shared_memory = {.known = true, .size = size, .free = free, .nccl = {}};
    machine.container = container;
    return machine;
}

// The words: wheel nvidia-nccl-cu13 2.29.7; the numbers: pytorch/ci-infra#490.
const char* const kTold =
    "Error while creating shared memory segment /dev/shm/nccl-WU88OE (size 9637888), error: No "
    "space left on device (28)";
// wheel nvidia-nccl-cu12 2.21.5: without the errno.
const char* const kNotTold =
    "Error while creating shared memory segment /dev/shm/nccl-NzwJ7O (size "
    "9637888)";

TEST(NcclShmTooSmall, NamesSizeUseAndNeed) {
    Machine machine = with_shm(64 * kMega, 5 * kMega, "docker");
    machine.shared_memory.nccl = {{.name = "nccl-a", .bytes = 9637892, .mapped = true},
                                  {.name = "nccl-b", .bytes = 9637892, .mapped = false}};
    const auto finding = said_of(system_error(kTold), machine);
    ASSERT_TRUE(finding);
    EXPECT_EQ(finding->slug, "nccl-shm-too-small");
    EXPECT_EQ(finding->confidence, Confidence::certain);
    EXPECT_EQ(finding->title,
              "/dev/shm is too small for NCCL: a segment of 10 MB did not fit (67 MB in all, 5 MB "
              "free now)");
    EXPECT_EQ(finding->evidence["need_bytes"], 9637888);
    EXPECT_EQ(finding->evidence["size_bytes"], 64 * kMega);
    EXPECT_EQ(finding->evidence["used_bytes"], 59 * kMega);
    EXPECT_EQ(finding->evidence["segments"].size(), 2U);
    EXPECT_TRUE(advises(*finding, "1 of NCCL's segments"));
    EXPECT_TRUE(advises(*finding, "docker run --shm-size=8G"));
    EXPECT_EQ(finding->fixes.back().command, "export NCCL_SHM_DISABLE=1") << "the last resort";
}

TEST(NcclShmTooSmall, KnowsWhereTheSizeIsGiven) {
    EXPECT_TRUE(advises(*said_of(system_error(kTold), with_shm(64 * kMega, 0, "kubernetes")),
                        "emptyDir: {medium: Memory}"));
    EXPECT_TRUE(advises(*said_of(system_error(kTold), with_shm(64 * kMega, 0)),
                        "64 MB is what container runtimes give"));
    const auto host = said_of(system_error(kTold), with_shm(8ULL << 30U, 0));
    ASSERT_TRUE(host);
    EXPECT_TRUE(advises(*host, "sudo mount -o remount,size=16G /dev/shm"));
    EXPECT_FALSE(advises(*host, "docker"));
}

// NVIDIA/nccl#290, #342, #525.
TEST(NcclShmTooSmall, KnowsTheWordsOfOldReleases) {
    const auto finding = said_of(
        "NCCL error: unhandled system error\nCall to posix_fallocate failed : No space left "
        "on device",
        with_shm(64 * kMega, 64 * kMega));
    ASSERT_TRUE(finding);
    EXPECT_EQ(finding->slug, "nccl-shm-too-small");
}

// NVIDIA/nccl#1518: the same words, where CUDA had refused the memory: there was space.
TEST(NcclShmTooSmall, InfersWhatTheWordsDoNotTellOnlyFromASmallOne) {
    const auto small = said_of(system_error(kNotTold, "2.21.5"), with_shm(64 * kMega, 60 * kMega));
    ASSERT_TRUE(small);
    EXPECT_EQ(small->slug, "nccl-shm-too-small");
    EXPECT_EQ(small->confidence, Confidence::likely);
    const auto large =
        said_of(system_error(kNotTold, "2.21.5"), with_shm(16ULL << 30U, 15ULL << 30U));
    ASSERT_TRUE(large);
    EXPECT_EQ(large->slug, "nccl-system-error");
    EXPECT_TRUE(large->fixes.empty());
}

TEST(NcclShmTooSmall, IsSilentOfOtherReasonsAndOfAnUnknownSize) {
    const auto denied =
        said_of(system_error(
                    "Error while creating shared memory segment /dev/shm/nccl-x (size 100), error: "
                    "Permission denied (13)"),
                with_shm(64 * kMega, 0));
    ASSERT_TRUE(denied);
    EXPECT_EQ(denied->slug, "nccl-system-error");
    EXPECT_FALSE(advises(*denied, "shm-size"));
    EXPECT_EQ(said_of(system_error(kNotTold))->slug, "nccl-system-error");
}

}  // namespace
}  // namespace cudiag
