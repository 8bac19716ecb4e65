#include "diagnose/packages/requirements.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

namespace cudiag {
namespace {

namespace fs = std::filesystem;

class Requirements : public testing::Test {
  protected:
    void SetUp() override {
        site_ = fs::path{testing::TempDir()} / ("requirements-" + std::to_string(getpid())) /
                "site-packages";
        fs::create_directories(site_ / "My_Torch-2.13.0.dist-info");
        std::ofstream{site_ / "My_Torch-2.13.0.dist-info" / "METADATA"}
            << "Metadata-Version: 2.4\nName: my-torch\n"
               "Requires-Dist: nvidia-nccl-cu13==2.29.7; platform_system == \"Linux\"\n"
               "Requires-Dist: NumPy (>=1.20)\n"
               "Requires-Dist: cuda-toolkit[cublas,cudart]==13.0.2\n"
               "Requires-Dist: opt-einsum>=3.3; extra == \"opt-einsum\"\n"
               "\nRequires-Dist: in-the-description==1\n";
        package_.manager = PackageManager::pip;
        package_.name = "my.torch";
        package_.version = "2.13.0";
        package_.location = site_.string();
    }

    void TearDown() override { fs::remove_all(site_.parent_path()); }

    fs::path site_;
    Package package_{};
};

TEST_F(Requirements, AreReadWithoutMarkersAndExtras) {
    const auto nccl = requirement_on(package_, "nvidia_nccl_cu13");
    ASSERT_TRUE(nccl);
    EXPECT_EQ(nccl->spec, "==2.29.7");
    EXPECT_EQ(requirement_on(package_, "numpy")->spec, ">=1.20");
    EXPECT_EQ(requirement_on(package_, "cuda-toolkit")->spec, "==13.0.2");
}

TEST_F(Requirements, LeaveOutWhatOnlyAnExtraWants) {
    EXPECT_FALSE(requirement_on(package_, "opt-einsum"));
}

TEST_F(Requirements, EndWhereTheHeadersEnd) {
    EXPECT_FALSE(requirement_on(package_, "in-the-description"));
}

TEST_F(Requirements, OfAPackageWithoutMetadataAreNone) {
    package_.name = "absent";
    EXPECT_TRUE(requirements_of(package_).empty());
}

TEST(PackageNames, AreNormalisedAsPep503Says) {
    EXPECT_EQ(normalised("Nvidia__NCCL.cu13"), "nvidia-nccl-cu13");
}

}  // namespace
}  // namespace cudiag
