#include "tests/unit/diagnose/build/facts.h"

namespace cudiag {
namespace {

using testing::failed;
using testing::first_case;

Facts refused(const std::string& nvcc, const std::string& arguments) {
    return testing::under_ninja(failed(20, 10, nvcc + " " + arguments + " -c /src/x.cu", 100, 200));
}

TEST(BuildToolkitMismatch, NamesTheStandardAndTheTorchThatAsksForIt) {
    const ElfWorld world;
    const std::string nvcc = testing::toolkit(world, "11.8");
    const std::string site = testing::wheel(world, "torch", "2.13.0+cu130");
    const Facts facts = refused(nvcc, "-I" + site + "/torch/include -std=c++20");
    const auto finding = build_toolkit_mismatch(first_case(facts));
    ASSERT_TRUE(finding);
    EXPECT_EQ(finding->slug, "build-toolkit-mismatch");
    EXPECT_EQ(finding->title,
              "nvcc 11.8 does not know -std=c++20, which torch 2.13.0+cu130 (for CUDA 13.0) is "
              "compiled with");
    EXPECT_EQ(finding->evidence["nvcc"], nvcc);
    EXPECT_EQ(finding->evidence["nvcc_release"], "11.8");
    EXPECT_EQ(finding->evidence["torch"], "2.13.0+cu130");
    EXPECT_EQ(finding->evidence["torch_cuda"], "13.0");
    EXPECT_EQ(finding->evidence["consequence"], "the newest standard of this nvcc is c++17");
    EXPECT_TRUE(testing::proposes(*finding, "apt-get install cuda-toolkit-13-0"));
}

TEST(BuildToolkitMismatch, IsToldWithoutTorchToo) {
    const ElfWorld world;
    for (const char* spelling : {"-std=c++20", "--std=c++20", "-std c++20", "--std c++20"}) {
        const Facts facts = refused(testing::toolkit(world, "11.8"), spelling);
        const auto finding = build_toolkit_mismatch(first_case(facts));
        ASSERT_TRUE(finding) << spelling;
        EXPECT_EQ(finding->title, "nvcc 11.8 does not know -std=c++20");
        EXPECT_EQ(finding->evidence["torch"], "");
    }
}

TEST(BuildToolkitMismatch, IsSilentOfAStandardThatThisNvccKnows) {
    const ElfWorld world;
    const Facts old = refused(testing::toolkit(world, "11.8"), "-std=c++17");
    EXPECT_FALSE(build_toolkit_mismatch(first_case(old)));
    const Facts later = refused(testing::toolkit(world, "12.0", "later"), "-std=c++20");
    EXPECT_FALSE(build_toolkit_mismatch(first_case(later)));
}

TEST(BuildToolkitMismatch, IsSilentWhereNoStandardIsAskedFor) {
    const ElfWorld world;
    const Facts facts = refused(testing::toolkit(world, "11.8"), "-O2");
    EXPECT_FALSE(build_toolkit_mismatch(first_case(facts)));
}

TEST(BuildToolkitMismatch, IsSilentOfOtherCompilers) {
    const ElfWorld world;
    testing::toolkit(world, "11.8");
    const Facts facts =
        testing::under_ninja(failed(20, 10, "g++ -std=c++26 -c /src/x.cpp", 100, 200),
                             {{"CUDA_HOME", world.path("cuda")}});
    EXPECT_FALSE(build_toolkit_mismatch(first_case(facts)));
}

}  // namespace
}  // namespace cudiag
