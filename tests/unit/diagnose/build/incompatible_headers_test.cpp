#include "tests/unit/diagnose/build/facts.h"

namespace cudiag {
namespace {

using testing::failed;
using testing::first_case;
using testing::holds;

// nvcc whose command line leads to the headers of this glibc, and a step that read them.
Facts front_end_failed(const ElfWorld& world, const std::string& release, const std::string& glibc,
                       const std::string& step) {
    world.text("usr/features.h", "#define __GLIBC__ 2\n#define\t__GLIBC_MINOR__\t" + glibc + "\n");
    return testing::under_nvcc(testing::toolkit(world, release) + " -I" + world.path("usr"),
                               failed(40, 30, step + " /src/fused.cu", 300, 600));
}

std::string cc1plus(const ElfWorld& world, const std::string& release) {
    return world.path("usr/lib/gcc/x86_64-linux-gnu/" + release + "/cc1plus");
}

TEST(BuildIncompatibleHeaders, TellsGlibcThatDeclaresWhatCudaDeclaresOtherwise) {
    const ElfWorld world;
    const Facts facts = front_end_failed(world, "12.8", "41", "cudafe++");
    const auto finding = build_incompatible_headers(first_case(facts));
    ASSERT_TRUE(finding);
    EXPECT_EQ(finding->slug, "build-incompatible-headers");
    EXPECT_EQ(finding->confidence, Confidence::likely);
    EXPECT_TRUE(holds(finding->title, "nvcc 12.8 and glibc 2.41 do not work together"));
    EXPECT_EQ(finding->evidence["pair"], "CUDA 12.9 and earlier, glibc 2.41");
    EXPECT_EQ(finding->evidence["a_release"], "12.8");
    EXPECT_EQ(finding->evidence["b"], "glibc");
    EXPECT_EQ(finding->evidence["b_release"], "2.41");
    EXPECT_EQ(finding->evidence["header"], "bits/mathcalls.h");
    EXPECT_EQ(finding->evidence["source"], "/src/fused.cu");
    EXPECT_FALSE(finding->fixes.empty());
}

TEST(BuildIncompatibleHeaders, TellsAGccWhoseLibraryThisNvccCannotRead) {
    const ElfWorld world;
    const Facts facts = front_end_failed(world, "11.5", "31", cc1plus(world, "11"));
    const auto finding = build_incompatible_headers(first_case(facts));
    ASSERT_TRUE(finding);
    EXPECT_EQ(finding->evidence["pair"], "nvcc 11.4 to 11.6, gcc 11");
    EXPECT_EQ(finding->evidence["b"], cc1plus(world, "11"));
    EXPECT_EQ(finding->evidence["b_release"], "11");
    EXPECT_TRUE(holds(finding->fixes.front().text, "CC=gcc-10"));
}

TEST(BuildIncompatibleHeaders, IsSilentOfReleasesThatWorkTogether) {
    const ElfWorld world;
    const Facts cured = front_end_failed(world, "13.0", "41", "cudafe++");
    EXPECT_FALSE(build_incompatible_headers(first_case(cured)));
    const Facts older = front_end_failed(world, "11.5", "31", cc1plus(world, "10"));
    EXPECT_FALSE(build_incompatible_headers(first_case(older)));
    const Facts later = front_end_failed(world, "11.7", "31", cc1plus(world, "11"));
    EXPECT_FALSE(build_incompatible_headers(first_case(later)));
}

TEST(BuildIncompatibleHeaders, IsSilentOfAStepThatReadsNoHeaders) {
    const ElfWorld world;
    const Facts facts = front_end_failed(world, "12.8", "41", "ptxas");
    EXPECT_FALSE(build_incompatible_headers(first_case(facts)));
}

TEST(BuildIncompatibleHeaders, IsSilentOfAHostCompileWithoutNvcc) {
    const ElfWorld world;
    testing::toolkit(world, "12.8");
    world.text("usr/features.h", "#define __GLIBC_MINOR__ 41\n");
    const Facts facts = testing::under_ninja(
        failed(20, 10, cc1plus(world, "12") + " -I" + world.path("usr") + " /src/a.cpp", 100, 200),
        {{"CUDA_HOME", world.path("cuda")}});
    EXPECT_FALSE(build_incompatible_headers(first_case(facts)));
}

TEST(BuildIncompatibleHeaders, IsSilentOfAFrontEndThatWasKilled) {
    const ElfWorld world;
    Facts facts = front_end_failed(world, "12.8", "41", "cudafe++");
    facts.build.steps.back() = testing::killed(40, 30, "cudafe++ /src/fused.cu", 300, 600);
    EXPECT_FALSE(build_incompatible_headers(first_case(facts)));
}

}  // namespace
}  // namespace cudiag
