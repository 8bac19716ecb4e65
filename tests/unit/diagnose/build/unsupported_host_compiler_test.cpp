#include "tests/unit/diagnose/build/facts.h"

namespace cudiag {
namespace {

using testing::commands_of;
using testing::Environment;
using testing::failed;
using testing::first_case;
using testing::holds;

// A compiler proper of gcc, where gcc installs it; there is no such file.
std::string cc1plus(const ElfWorld& world, const std::string& release) {
    return world.path("usr/lib/gcc/x86_64-linux-gnu/" + release + "/cc1plus");
}

Facts host_failed(const ElfWorld& world, const std::string& nvcc, const std::string& gcc,
                  const Environment& environment = {}) {
    return testing::under_nvcc(
        nvcc, failed(40, 30, cc1plus(world, gcc) + " -E /src/fused.cu", 300, 600), environment);
}

TEST(BuildUnsupportedHostCompiler, TellsTheNewestThatThisNvccTakes) {
    const ElfWorld world;
    const std::string nvcc = testing::toolkit(world, "11.8");
    const std::string gcc = testing::program(world, "bin/gcc-11");
    const Facts facts = host_failed(world, nvcc, "12.2.0", {{"PATH", world.path("bin")}});
    const auto finding = build_unsupported_host_compiler(first_case(facts));
    ASSERT_TRUE(finding);
    EXPECT_EQ(finding->slug, "build-unsupported-host-compiler");
    EXPECT_EQ(finding->title,
              "nvcc 11.8 supports gcc up to 11, and the host compiler is gcc 12.2.0");
    EXPECT_EQ(finding->evidence["nvcc"], nvcc);
    EXPECT_EQ(finding->evidence["nvcc_release"], "11.8");
    EXPECT_EQ(finding->evidence["limit"], "gcc 11");
    EXPECT_EQ(finding->evidence["host_release"], "12.2.0");
    EXPECT_EQ(finding->evidence["source"], "/src/fused.cu");
    EXPECT_EQ(finding->evidence["others"].at(0), gcc);
    EXPECT_EQ(commands_of(*finding).front(),
              "export CC=gcc-11 CXX=g++-11 NVCC_PREPEND_FLAGS='-ccbin g++-11'");
    for (const std::string& command : commands_of(*finding)) {
        EXPECT_FALSE(holds(command, "allow-unsupported-compiler"));
    }
}

TEST(BuildUnsupportedHostCompiler, LeavesTheChoiceToABuildThatHandsACompilerToNvcc) {
    const ElfWorld world;
    testing::program(world, "bin/gcc-11");
    const Facts facts = host_failed(world, testing::toolkit(world, "11.8") + " -ccbin gcc", "12",
                                    {{"PATH", world.path("bin")}});
    const auto finding = build_unsupported_host_compiler(first_case(facts));
    ASSERT_TRUE(finding);
    EXPECT_EQ(commands_of(*finding).front(), "export CC=gcc-11 CXX=g++-11");
}

TEST(BuildUnsupportedHostCompiler, KnowsClangByTheNameOfItsDriver) {
    const ElfWorld world;
    const Facts facts =
        testing::under_nvcc(testing::toolkit(world, "11.8"),
                            failed(40, 30, world.path("bin/clang++-15") + " -E x.cu", 300, 600));
    const auto finding = build_unsupported_host_compiler(first_case(facts));
    ASSERT_TRUE(finding);
    EXPECT_EQ(finding->evidence["limit"], "clang 14");
    EXPECT_EQ(finding->evidence["host_release"], "15");
}

TEST(BuildUnsupportedHostCompiler, IsSilentOfTheNewestThatIsSupported) {
    const ElfWorld world;
    const Facts facts = host_failed(world, testing::toolkit(world, "11.8"), "11");
    EXPECT_FALSE(build_unsupported_host_compiler(first_case(facts)));
}

// nvcc's last step: gcc compiles what cudafe++ made of the source, and shows lines of these files.
Facts host_pass_failed(const ElfWorld& world, const std::string& nvcc,
                       const std::vector<std::string>& shown, const Environment& environment = {}) {
    BuildStep step = failed(40, 30, cc1plus(world, "12") + " /tmp/fused.cudafe1.cpp", 300, 600);
    step.opens = {{"/tmp/fused.cudafe1.cpp", true},
                  {"/usr/include/c++/12/stdc-predef.h", false},
                  {"/tmp/fused.cudafe1.stub.c", true}};
    for (const std::string& file : shown) {
        step.opens.push_back({file, true});
    }
    return testing::under_nvcc(nvcc, step, environment);
}

TEST(BuildUnsupportedHostCompiler, IsLikelyWhereTheCheckWasSwitchedOffAndAHeaderOfGccIsNotParsed) {
    const ElfWorld world;
    testing::program(world, "bin/gcc-11");
    const Facts facts = host_pass_failed(
        world, testing::toolkit(world, "11.8") + " -allow-unsupported-compiler",
        {"/usr/include/c++/12/bits/stl_map.h", "/src/fused.cu"}, {{"PATH", world.path("bin")}});
    const auto finding = build_unsupported_host_compiler(first_case(facts));
    ASSERT_TRUE(finding);
    EXPECT_EQ(finding->confidence, Confidence::likely);
    EXPECT_EQ(finding->title,
              "nvcc 11.8 was told to accept gcc 12, which it does not support, and what it made of "
              "that compiler's stl_map.h cannot be compiled");
    EXPECT_EQ(finding->evidence["allowed_by"], "nvcc's command line");
    EXPECT_EQ(finding->evidence["header"], "/usr/include/c++/12/bits/stl_map.h");
    EXPECT_EQ(commands_of(*finding).front(),
              "export CC=gcc-11 CXX=g++-11 NVCC_PREPEND_FLAGS='-ccbin g++-11'");
}

TEST(BuildUnsupportedHostCompiler, NamesTheVariableThatSwitchedTheCheckOff) {
    const ElfWorld world;
    const Facts facts =
        host_pass_failed(world, testing::toolkit(world, "11.8"),
                         {"/opt/env/lib/gcc/x86_64-conda-linux-gnu/12.3.0/include/c++/functional"},
                         {{"NVCC_APPEND_FLAGS", "-O2 -allow-unsupported-compiler"}});
    const auto finding = build_unsupported_host_compiler(first_case(facts));
    ASSERT_TRUE(finding);
    EXPECT_EQ(finding->evidence["allowed_by"], "NVCC_APPEND_FLAGS");
}

TEST(BuildUnsupportedHostCompiler, IsSilentOfAMistakeInTheSourceWhereTheCheckWasSwitchedOff) {
    const ElfWorld world;
    const std::string nvcc = testing::toolkit(world, "11.8") + " -allow-unsupported-compiler";
    const std::string map = "/usr/include/c++/12/bits/stl_map.h";
    for (const std::vector<std::string>& shown : {std::vector<std::string>{},
                                                  {"/src/fused.cu", map},
                                                  {"/src/mine.h", map},
                                                  {"/src/c++/mine.h"}}) {
        const Facts facts = host_pass_failed(world, nvcc, shown);
        EXPECT_FALSE(build_unsupported_host_compiler(first_case(facts)));
    }
}

TEST(BuildUnsupportedHostCompiler, IsSilentOfOtherStepsWhereTheCheckWasSwitchedOff) {
    const ElfWorld world;
    BuildStep step = failed(40, 30, cc1plus(world, "12") + " -E /src/fused.cu", 300, 600);
    step.opens = {{"/usr/include/c++/12/map", true}};  // every preprocessing reads it
    const Facts facts =
        testing::under_nvcc(testing::toolkit(world, "11.8") + " -allow-unsupported-compiler", step);
    EXPECT_FALSE(build_unsupported_host_compiler(first_case(facts)));
}

TEST(BuildUnsupportedHostCompiler, IsSilentOfASupportedOneWhereTheCheckWasSwitchedOff) {
    const ElfWorld world;
    const Facts facts =
        host_pass_failed(world, testing::toolkit(world, "13.0") + " -allow-unsupported-compiler",
                         {"/usr/include/c++/12/bits/stl_map.h"});
    EXPECT_FALSE(build_unsupported_host_compiler(first_case(facts)));
}

TEST(BuildUnsupportedHostCompiler, KeepsTheOptionsThatAVariableHoldsAlready) {
    const ElfWorld world;
    testing::program(world, "bin/gcc-11");
    const Facts facts = host_failed(world, testing::toolkit(world, "11.8"), "12",
                                    {{"PATH", world.path("bin")}, {"NVCC_PREPEND_FLAGS", "-O2"}});
    const auto finding = build_unsupported_host_compiler(first_case(facts));
    ASSERT_TRUE(finding);
    EXPECT_EQ(commands_of(*finding).front(),
              "export CC=gcc-11 CXX=g++-11 NVCC_PREPEND_FLAGS=\"-ccbin g++-11 "
              "$NVCC_PREPEND_FLAGS\"");
}

TEST(BuildUnsupportedHostCompiler, IsSilentOfReleasesThatNobodyKnows) {
    const ElfWorld world;
    const Facts facts = host_failed(world, testing::toolkit(world, "10.2"), "12");
    EXPECT_FALSE(build_unsupported_host_compiler(first_case(facts)));
}

TEST(BuildUnsupportedHostCompiler, IsSilentOfACompileThatNvccDidNotAskFor) {
    const ElfWorld world;
    testing::toolkit(world, "11.8");
    const Facts facts =
        testing::under_ninja(failed(20, 10, cc1plus(world, "12") + " /src/a.cpp", 100, 200),
                             {{"CUDA_HOME", world.path("cuda")}});
    EXPECT_FALSE(build_unsupported_host_compiler(first_case(facts)));
}

TEST(BuildUnsupportedHostCompiler, IsSilentOfACompilerThatWasKilled) {
    const ElfWorld world;
    const Facts facts = testing::under_nvcc(
        testing::toolkit(world, "11.8"),
        testing::killed(40, 30, cc1plus(world, "12") + " -E /src/fused.cu", 300, 600));
    EXPECT_FALSE(build_unsupported_host_compiler(first_case(facts)));
}

}  // namespace
}  // namespace cudiag
