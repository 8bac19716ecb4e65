#include "tests/unit/diagnose/build/facts.h"

namespace cudiag {
namespace {

using testing::commands_of;
using testing::failed;
using testing::first_case;
using testing::holds;

Facts refused(const std::string& nvcc, const std::string& arguments,
              const testing::Environment& environment = {}) {
    return testing::under_ninja(failed(20, 10, nvcc + " " + arguments, 100, 200), environment);
}

TEST(BuildUnsupportedArch, IsBlamedOnTheListThatNamesIt) {
    const ElfWorld world;
    const std::string nvcc = testing::toolkit(world, "13.0");
    const Facts facts =
        refused(nvcc,
                "-gencode=arch=compute_70,code=sm_70 -gencode=arch=compute_90,code=sm_90 -c "
                "/src/fused.cu",
                {{"TORCH_CUDA_ARCH_LIST", "7.0 9.0+PTX"}});
    const auto finding = build_unsupported_arch(first_case(facts));
    ASSERT_TRUE(finding);
    EXPECT_EQ(finding->slug, "build-unsupported-arch");
    EXPECT_EQ(finding->title, "nvcc 13.0 does not compile for compute_70: it knows 75 to 121f");
    EXPECT_EQ(finding->evidence["architecture"], "compute_70");
    EXPECT_EQ(finding->evidence["nvcc"], nvcc);
    EXPECT_EQ(finding->evidence["nvcc_release"], "13.0");
    EXPECT_EQ(finding->evidence["supported"].at(0), "75");
    EXPECT_EQ(finding->evidence["torch_cuda_arch_list"], "7.0 9.0+PTX");
    EXPECT_EQ(finding->evidence["flag_from"], "TORCH_CUDA_ARCH_LIST");
    EXPECT_EQ(finding->evidence["source"], "/src/fused.cu");
    EXPECT_EQ(commands_of(*finding).front(), "export TORCH_CUDA_ARCH_LIST='9.0+PTX'");
}

TEST(BuildUnsupportedArch, IsBlamedOnThePackageWhereTheListDoesNotNameIt) {
    const ElfWorld world;
    Facts facts =
        refused(testing::toolkit(world, "13.0"), "-gencode arch=compute_70,code=sm_70 -c x.cu",
                {{"TORCH_CUDA_ARCH_LIST", "9.0"}});
    facts.processes = {testing::python_that_raised(world, "CalledProcessError",
                                                   "Command 'ninja' returned exit status 1")};
    facts.processes[0].argv = {"python", "setup.py", "install"};
    const auto finding = build_unsupported_arch(first_case(facts));
    ASSERT_TRUE(finding);
    EXPECT_EQ(finding->evidence["flag_from"],
              world.path("setup.py") + ": TORCH_CUDA_ARCH_LIST does not name it");
    EXPECT_FALSE(testing::proposes(*finding, "export TORCH_CUDA_ARCH_LIST"))
        << "it would change nothing";
}

TEST(BuildUnsupportedArch, IsFoundInEverySpellingOfTheOption) {
    const ElfWorld world;
    const std::string nvcc = testing::toolkit(world, "13.0");
    for (const char* arguments :
         {"-arch=sm_70 -c x.cu", "-arch sm_70 -c x.cu", "--gpu-architecture=compute_70 -c x.cu",
          "--gpu-architecture compute_70 -c x.cu", "-arch=compute_75 -code=sm_70 -c x.cu",
          "-arch compute_75 -code compute_75,sm_70 -c x.cu", "--gpu-code=sm_70 -c x.cu",
          "-gencode arch=compute_75,code=[sm_75,sm_70] -c x.cu",
          "--generate-code=arch=compute_75,code=\"sm_70,compute_75\" -c x.cu",
          "--generate-code arch=compute_70,code=lto_70 -c x.cu"}) {
        const Facts facts = refused(nvcc, arguments);
        EXPECT_TRUE(build_unsupported_arch(first_case(facts))) << arguments;
    }
}

TEST(BuildUnsupportedArch, KnowsArchitecturesThatAreTooNew) {
    const ElfWorld world;
    const Facts facts = refused(testing::toolkit(world, "12.4"), "-arch=sm_100 -c x.cu");
    const auto finding = build_unsupported_arch(first_case(facts));
    ASSERT_TRUE(finding);
    EXPECT_EQ(finding->title, "nvcc 12.4 does not compile for sm_100: it knows 50 to 90a");
}

TEST(BuildUnsupportedArch, IsSilentWhereAllOfThemAreKnown) {
    const ElfWorld world;
    const Facts facts = refused(testing::toolkit(world, "13.0"),
                                "-gencode=arch=compute_90a,code=sm_90a -arch=sm_75 -c x.cu");
    EXPECT_FALSE(build_unsupported_arch(first_case(facts)));
}

TEST(BuildUnsupportedArch, IsSilentOfNamesThatAreNoOption) {
    const ElfWorld world;
    const std::string nvcc = testing::toolkit(world, "13.0");
    for (const char* arguments :
         {"-arch=sm_90 -c /src/attention_sm_70.cu", "-I/opt/prism_50/include -arch=sm_90 -c x.cu",
          "-DTORCH_EXTENSION_NAME=kernels_sm_70 -arch=sm_90 -c x.cu",
          "-arch=sm_90 -c x.cu -o build/compute_35.o"}) {
        const Facts facts = refused(nvcc, arguments);
        EXPECT_FALSE(build_unsupported_arch(first_case(facts))) << arguments;
    }
}

TEST(BuildUnsupportedArch, IsSilentOfAnNvccOfUnknownRelease) {
    const ElfWorld world;
    const std::string nvcc = testing::program(world, "bare/bin/nvcc");
    const Facts facts = refused(nvcc, "-arch=sm_70 -c x.cu");
    EXPECT_FALSE(build_unsupported_arch(first_case(facts)));
}

TEST(BuildUnsupportedArch, IsSilentWhereAStepOfNvccFailed) {
    const ElfWorld world;
    const Facts facts =
        testing::under_nvcc(testing::toolkit(world, "13.0") + " -arch=sm_70",
                            failed(40, 30, "/usr/lib/gcc/x/12/cc1plus x.cu", 300, 600));
    EXPECT_FALSE(build_unsupported_arch(first_case(facts)));
}

}  // namespace
}  // namespace cudiag
