#include "tests/unit/diagnose/loader/elf_world.h"
#include "tests/unit/diagnose/nccl/facts.h"

namespace cudiag {
namespace {

// A site-packages with a torch that asks for `wanted`, and a process that has an NCCL of `mapped`
// from `directory` in it. Files of one's own making: only their version strings are real.
class NcclOtherThanTorchs : public ::testing::Test {
  protected:
    Process with(const std::string& wanted, const std::string& mapped,
                 const std::string& directory) const {
        world_.text(site_ + "/torch-2.13.0.dist-info/METADATA",
                    "Metadata-Version: 2.1\nName: torch\nVersion: 2.13.0\nRequires-Dist: "
                    "nvidia-nccl-cu13==" +
                        wanted + "; platform_system == \"Linux\"\n\n");
        world_.text(site_ + "/torch-2.13.0.dist-info/RECORD", "torch/lib/libtorch_cuda.so,,\n");
        Process process = testing::failed_of(testing::system_error("Call to bind failed: x"));
        process.exe = world_.path("venv/bin/python3.11");
        for (const std::string& path :
             {world_.library(site_ + "/torch/lib/libtorch_cuda.so"),
              world_.library(directory + "/libnccl.so.2",
                             {.source = "const char version[] = \"NCCL version " + mapped +
                                        "+cuda13.0\";"})}) {
            Module module;
            module.path = path;
            process.snapshots[1].push_back(module);
        }
        return process;
    }

    const ElfWorld world_;
    const std::string site_ = "venv/lib/python3.11/site-packages";
};

TEST_F(NcclOtherThanTorchs, NamesBothAndTheVariableThatBroughtTheOther) {
    Process process = with("2.29.7", "2.28.9", "opt/cuda/lib64");
    process.environment["LD_LIBRARY_PATH"] = world_.path("opt/cuda/lib64") + ":/opt/mine";
    const auto finding = nccl_other_than_torchs(process);
    ASSERT_TRUE(finding);
    EXPECT_EQ(finding->slug, "nccl-version-mix");
    EXPECT_EQ(finding->severity, Severity::warning);
    EXPECT_EQ(finding->confidence, Confidence::likely);
    EXPECT_EQ(finding->evidence["nccl_version"], "2.28.9");
    EXPECT_EQ(finding->evidence["torch_asks_for"], "nvidia-nccl-cu13==2.29.7");
    ASSERT_EQ(finding->fixes.size(), 1U);
    EXPECT_EQ(finding->fixes[0].command, "export LD_LIBRARY_PATH=/opt/mine");
}

TEST_F(NcclOtherThanTorchs, ProposesNothingWhereNobodyKnowsWhoBroughtIt) {
    const auto finding = nccl_other_than_torchs(with("2.29.7", "2.28.9", "opt/cuda/lib64"));
    ASSERT_TRUE(finding);
    EXPECT_TRUE(finding->fixes.empty());
}

TEST_F(NcclOtherThanTorchs, InstallsThePackageAnewWhereAnotherPackageBroughtIt) {
    world_.text(site_ + "/nvidia_nccl_cu13-2.28.9.dist-info/METADATA",
                "Metadata-Version: 2.1\nName: nvidia-nccl-cu13\nVersion: 2.28.9\n\n");
    world_.text(site_ + "/nvidia_nccl_cu13-2.28.9.dist-info/RECORD",
                "nvidia/nccl/lib/libnccl.so.2,,\n");
    const auto finding =
        nccl_other_than_torchs(with("2.29.7", "2.28.9", site_ + "/nvidia/nccl/lib"));
    ASSERT_TRUE(finding);
    ASSERT_EQ(finding->fixes.size(), 1U);
    EXPECT_TRUE(testing::holds(finding->fixes[0].command,
                               "-m pip install --no-deps nvidia-nccl-cu13==2.29.7"));
}

TEST_F(NcclOtherThanTorchs, IsANoteWhereItIsNewer) {
    const auto finding = nccl_other_than_torchs(with("2.29.7", "2.30.1", "opt/cuda/lib64"));
    ASSERT_TRUE(finding);
    EXPECT_EQ(finding->severity, Severity::note);
    EXPECT_TRUE(finding->fixes.empty());
}

TEST_F(NcclOtherThanTorchs, IsSilentWhereItIsTheOneAskedFor) {
    EXPECT_FALSE(nccl_other_than_torchs(with("2.29.7", "2.29.7", "opt/cuda/lib64")));
}

TEST_F(NcclOtherThanTorchs, IsSaidOnlyOfAProcessThatNcclFailedIn) {
    Facts facts;
    facts.processes = {with("2.29.7", "2.28.9", "opt/cuda/lib64")};
    const auto says = [&] {
        const std::vector<Finding> findings = judge(facts, Machine{});
        return std::any_of(findings.begin(), findings.end(), [](const Finding& finding) {
            return finding.slug == "nccl-version-mix";
        });
    };
    EXPECT_TRUE(says());
    facts.processes[0].exceptions[0].message = "'epochs'";
    EXPECT_FALSE(says());
}

}  // namespace
}  // namespace cudiag
