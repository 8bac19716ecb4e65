#include "tests/unit/diagnose/nccl/facts.h"

namespace cudiag {
namespace {

using testing::advises;
using testing::rank_failed_of;
using testing::said_of;

std::string duplicate(const std::string& device = "7000") {
    return testing::invalid_usage(
        "Duplicate GPU detected : rank 1 and rank 0 both on CUDA device " + device);
}

Machine with_gpus(int count) {
    Machine machine;
    machine.device_nodes = {"/dev/nvidiactl", "/dev/nvidia-uvm"};
    for (int i = 0; i < count; ++i) {
        machine.device_nodes.push_back("/dev/nvidia" + std::to_string(i));
    }
    return machine;
}

TEST(NcclDuplicateGpu, NamesTheRanksAndTheGpuAsNvidiaSmiDoes) {
    const auto finding = said_of(
        {rank_failed_of(duplicate(), 1, 2), rank_failed_of(duplicate(), 0, 2)}, with_gpus(4));
    ASSERT_TRUE(finding);
    EXPECT_EQ(finding->slug, "nccl-duplicate-gpu");
    EXPECT_TRUE(testing::holds(finding->title, "rank 1 and rank 0 use the same GPU, 0000:07:00.0"));
    EXPECT_EQ(finding->evidence["bus_id"], "7000");
    EXPECT_EQ(finding->evidence["gpus"], 4);
    ASSERT_EQ(finding->evidence["processes_here"].size(), 2U);
    EXPECT_EQ(finding->evidence["processes_here"][0]["local_rank"], "1");
    EXPECT_EQ(finding->evidence["processes_here"][1]["cuda_visible_devices"], "not set");
    ASSERT_EQ(finding->fixes.size(), 1U);
    EXPECT_TRUE(advises(*finding, "torch.cuda.set_device(int(os.environ[\"LOCAL_RANK\"]))"));
    EXPECT_EQ(finding->fixes[0].command, "");
}

// facebookresearch/ViewDiff#24: four processes, one GPU.
TEST(NcclDuplicateGpu, AsksForFewerProcessesWhereThereAreFewerGpus) {
    const auto finding = said_of({rank_failed_of(duplicate(), 1, 4)}, with_gpus(1));
    ASSERT_TRUE(finding);
    ASSERT_EQ(finding->fixes.size(), 1U);
    EXPECT_TRUE(advises(*finding, "4 were started, and this one sees 1"));
    EXPECT_FALSE(advises(*finding, "set_device"));
}

TEST(NcclDuplicateGpu, TellsOfRanksThatWereGivenTheSameGpu) {
    Process one = rank_failed_of(duplicate(), 1, 2);
    Process other = rank_failed_of(duplicate(), 0, 2);
    one.environment["CUDA_VISIBLE_DEVICES"] = other.environment["CUDA_VISIBLE_DEVICES"] = "3";
    const auto same = said_of({one, other}, with_gpus(4));
    ASSERT_TRUE(same);
    EXPECT_TRUE(advises(*same, "CUDA_VISIBLE_DEVICES=3"));
    other.environment["CUDA_VISIBLE_DEVICES"] = "2";
    const auto own = said_of({one, other}, with_gpus(4));
    ASSERT_TRUE(own);
    EXPECT_FALSE(advises(*own, "CUDA_VISIBLE_DEVICES="));
}

TEST(NcclDuplicateGpu, ChoosesByRankWhereNoLocalRankIsSet) {
    const auto finding = said_of(duplicate("e2000"), with_gpus(2));
    ASSERT_TRUE(finding);
    EXPECT_EQ(finding->evidence["pci"], "0000:e2:00.0");
    EXPECT_TRUE(advises(*finding, "torch.cuda.set_device(rank % torch.cuda.device_count())"));
}

TEST(NcclDuplicateGpu, ProposesNothingForInstancesOfOneGpu) {
    Machine machine = with_gpus(1);
    machine.mig_instances = {"gpu0/gi1", "gpu0/gi2"};
    const auto finding = said_of({rank_failed_of(duplicate(), 1, 2)}, machine);
    ASSERT_TRUE(finding);
    EXPECT_TRUE(finding->fixes.empty());
    EXPECT_TRUE(testing::holds(finding->limits, "MIG"));
}

}  // namespace
}  // namespace cudiag
