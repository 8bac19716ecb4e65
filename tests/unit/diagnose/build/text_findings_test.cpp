#include "tests/unit/diagnose/build/facts.h"

namespace cudiag {
namespace {

using testing::commands_of;
using testing::holds;
using testing::proposes;
using testing::python_that_raised;

std::optional<Finding> told(const Process& process) {
    Facts facts;
    facts.processes = {process};
    return build_text_finding(facts, facts.processes[0]);
}

AskedProgram asked_for(const std::string& path, int error, int status) {
    AskedProgram asked;
    asked.path = path;
    asked.error = error;
    asked.status = status;
    return asked;
}

TEST(BuildText, OfAMissingCudaHomeIsAMissingNvcc) {
    const ElfWorld world;
    testing::wheel(world, "torch", "2.13.0+cu130");
    const auto finding = told(python_that_raised(
        world, "OSError",
        "CUDA_HOME environment variable is not set. Please set it to your CUDA install root."));
    ASSERT_TRUE(finding);
    EXPECT_EQ(finding->slug, "build-missing-compiler");
    EXPECT_EQ(
        finding->title,
        "no nvcc on this machine's paths, and CUDA_HOME is not set: torch 2.13.0+cu130 brings "
        "the CUDA 13.0 runtime, not the compiler");
    EXPECT_EQ(finding->evidence["program"], "nvcc");
    EXPECT_EQ(finding->evidence["state"], "absent");
    EXPECT_TRUE(holds(finding->evidence["error"], "CUDA_HOME environment variable is not set"));
    EXPECT_EQ(finding->pid, 5);
    ASSERT_EQ(finding->python.size(), 1U);
    EXPECT_EQ(finding->python[0].file, "train.py");
}

TEST(BuildText, OfAMissingNinjaTellsOneThatDoesNotRunFromNone) {
    const ElfWorld world;
    const char* kText = "Ninja is required to load C++ extensions (pip install ninja to get it)";
    const auto absent = told(python_that_raised(world, "RuntimeError", kText));
    ASSERT_TRUE(absent);
    EXPECT_EQ(absent->evidence["program"], "ninja");
    EXPECT_EQ(absent->evidence["state"], "absent");
    EXPECT_TRUE(proposes(*absent, " -m pip install ninja"));

    Process broken = python_that_raised(world, "RuntimeError", kText);
    broken.asked_programs = {asked_for("/venv/bin/ninja", 0, 1 << 8)};
    const auto finding = told(broken);
    ASSERT_TRUE(finding);
    EXPECT_EQ(finding->title, "ninja is there but does not run: /venv/bin/ninja");
    EXPECT_EQ(finding->evidence["state"], "broken");
    EXPECT_EQ(finding->evidence["ended"], "exit status 1");
    EXPECT_TRUE(proposes(*finding, "pip install --force-reinstall ninja"));

    broken.asked_programs = {asked_for("/venv/bin/ninja", 0, SIGSEGV)};
    EXPECT_EQ(told(broken)->evidence["ended"], "signal 11");
    broken.asked_programs = {asked_for("/venv/bin/ninja", ENOENT, 0)};
    EXPECT_EQ(told(broken)->evidence["state"], "absent");
}

TEST(BuildText, OfAGccThatFailsIsNotOneThatIsAbsent) {
    const ElfWorld world;
    Process process = python_that_raised(
        world, "RuntimeError", "nvcc fatal   : Failed to preprocess host compiler properties.");
    process.environment = {{"PATH", world.path("bin")}};
    const auto absent = told(process);
    ASSERT_TRUE(absent);
    EXPECT_EQ(absent->evidence["program"], "gcc");
    testing::program(world, "bin/gcc");
    EXPECT_FALSE(told(process));
}

TEST(BuildText, OfAVersionThatIsRefusedNamesBothReleases) {
    const ElfWorld world;
    const std::string message =
        "('The detected CUDA version (%s) mismatches the version that was used to compile"
        "PyTorch (%s). Please make sure to use the same CUDA versions.', '13.0', '12.8')";
    Process process = python_that_raised(world, "RuntimeError", message);
    testing::toolkit(world, "13.0");
    process.environment = {{"CUDA_HOME", world.path("cuda")}};
    testing::wheel(world, "torch", "2.9.1+cu128");
    const auto finding = told(process);
    ASSERT_TRUE(finding);
    EXPECT_EQ(finding->slug, "build-toolkit-mismatch");
    EXPECT_EQ(finding->title,
              "nvcc is of CUDA 13.0, and torch 2.9.1+cu128 was built for CUDA 12.8: the build is "
              "refused");
    EXPECT_EQ(finding->evidence["nvcc"], world.path("cuda/bin/nvcc"));
    EXPECT_EQ(finding->evidence["torch_cuda"], "12.8");
    EXPECT_TRUE(proposes(*finding, "apt-get install cuda-toolkit-12-8"));
}

TEST(BuildText, OfAnArchitectureThatTorchDoesNotKnowNamesIt) {
    const ElfWorld world;
    Process process =
        python_that_raised(world, "ValueError", "Unknown CUDA arch (12.9) or GPU not supported");
    process.environment = {{"TORCH_CUDA_ARCH_LIST", "12.9"}};
    const auto finding = told(process);
    ASSERT_TRUE(finding);
    EXPECT_EQ(finding->slug, "build-unsupported-arch");
    EXPECT_EQ(finding->title, "torch does not know the architecture 12.9");
    EXPECT_EQ(finding->evidence["torch_cuda_arch_list"], "12.9");
    EXPECT_TRUE(proposes(*finding, "export TORCH_CUDA_ARCH_LIST="));
}

TEST(BuildText, OfAnEmptyListIsTakenFromTorchsOwnFunctionAlone) {
    const ElfWorld world;
    const auto finding = told(
        python_that_raised(world, "IndexError", "list index out of range", "_get_cuda_arch_flags"));
    ASSERT_TRUE(finding);
    EXPECT_EQ(finding->slug, "build-unsupported-arch");
    EXPECT_EQ(finding->evidence["architecture"], "none");
    EXPECT_FALSE(told(python_that_raised(world, "IndexError", "list index out of range", "main")));
}

TEST(BuildText, OfNvrtcNamesTheHeadersOfAnotherRelease) {
    const ElfWorld world;
    world.text("old/include/cuda.h", "#define CUDA_VERSION 12010\n");
    world.text("nvrtc/libnvrtc.so.12.9.86", "");
    const std::string log = "error: incomplete type \"__nv_fp8_e8m0\" is not allowed";
    Process process = python_that_raised(world, "RuntimeError",
                                         world.path("old/include/cuda_fp8.hpp") + "(97): " + log);
    process.environment = {{"CUDA_PATH", world.path("old")}};
    Module nvrtc;
    nvrtc.path = world.path("nvrtc/libnvrtc.so.12.9.86");
    process.snapshots[1] = {nvrtc};
    const auto finding = told(process);
    ASSERT_TRUE(finding);
    EXPECT_EQ(finding->slug, "build-nvrtc-failed");
    EXPECT_EQ(finding->title,
              "NVRTC 12.9 compiled with the headers of CUDA 12.1 in " + world.path("old/include"));
    EXPECT_EQ(finding->evidence["nvrtc_release"], "12.9");
    EXPECT_EQ(finding->evidence["variable"], "CUDA_PATH=" + world.path("old"));
    EXPECT_EQ(finding->evidence["include_directories"][0]["cuda_release"], "12.1");
    EXPECT_EQ(commands_of(*finding).front(), "unset CUDA_PATH");

    world.text("old/include/cuda.h", "#define CUDA_VERSION 12090\n");
    EXPECT_FALSE(told(process)) << "the kernel's own mistake";
    world.text("old/include/cuda.h", "#define CUDA_VERSION 12010\n");
    process.snapshots.clear();
    EXPECT_FALSE(told(process)) << "no NVRTC was there to say it";
}

TEST(BuildText, OfNvrtcIsOnlyLikelyWhereAVariableAloneLeadsToOtherHeaders) {
    const ElfWorld world;
    world.text("old/include/cuda.h", "#define CUDA_VERSION 12010\n");
    world.text("nvrtc/libnvrtc.so.12.9.86", "");
    Process process = python_that_raised(world, "RuntimeError",
                                         "fused.cu(2): error: identifier \"undeclared\" is "
                                         "undefined");
    process.environment = {{"CUDA_PATH", world.path("old")}};
    Module nvrtc;
    nvrtc.path = world.path("nvrtc/libnvrtc.so.12.9.86");
    process.snapshots[1] = {nvrtc};
    EXPECT_FALSE(told(process)) << "a mistake of the kernel's own";
    process.exceptions[0].message = "fused.cu(2): error: identifier \"__nv_fp8_e8m0\" is undefined";
    const auto finding = told(process);
    ASSERT_TRUE(finding);
    EXPECT_EQ(finding->confidence, Confidence::likely);
}

TEST(BuildText, OfAHostCompilerThatTorchRefusesIsJudgedByTheReleases) {
    const ElfWorld world;
    testing::toolkit(world, "11.8");
    Process process = python_that_raised(
        world, "RuntimeError",
        "The current installed version of g++ (12.2.0) is greater than the maximum required "
        "version by CUDA 11.8. Please make sure to use an adequate version of g++ (>=6.0.0, "
        "<12.0).");
    process.environment = {{"CUDA_HOME", world.path("cuda")}};
    const auto finding = told(process);
    ASSERT_TRUE(finding);
    EXPECT_EQ(finding->slug, "build-unsupported-host-compiler");
    EXPECT_EQ(finding->evidence["limit"], "gcc 11");
    EXPECT_EQ(finding->evidence["host_release"], "12.2.0");
    testing::toolkit(world, "13.0");
    EXPECT_FALSE(told(process)) << "this nvcc takes it";
}

TEST(BuildText, OfDeepSpeedsOpsNamesBothTorches) {
    const ElfWorld world;
    const Process process = python_that_raised(
        world, "RuntimeError",
        "PyTorch version mismatch! DeepSpeed ops were compiled and installed with a different "
        "version than what is being used at runtime. Please re-install DeepSpeed or switch torch "
        "versions. Install torch version=2.9, Runtime torch version=2.13");
    EXPECT_FALSE(told(process)) << "no DeepSpeed is there";
    const std::string site = testing::wheel(world, "deepspeed", "0.19.8");
    const auto finding = told(process);
    ASSERT_TRUE(finding);
    EXPECT_EQ(finding->slug, "build-stale-cache");
    EXPECT_EQ(finding->evidence["built_with"], "2.9");
    EXPECT_EQ(finding->evidence["loaded_by"], "2.13");
    EXPECT_EQ(finding->evidence["cache"], site);
    EXPECT_TRUE(proposes(*finding, "--no-build-isolation --no-cache-dir 'deepspeed==0.19.8'"));
}

TEST(BuildText, OfAnExtensionThatIsMissingNamesThePackage) {
    const ElfWorld world;
    const Process process =
        python_that_raised(world, "ModuleNotFoundError", "No module named 'amp_C'");
    EXPECT_FALSE(told(process)) << "apex is not installed";
    const std::string site = testing::wheel(world, "apex", "0.1");
    const auto finding = told(process);
    ASSERT_TRUE(finding);
    EXPECT_EQ(finding->slug, "package-without-extension");
    EXPECT_EQ(finding->evidence["package"], "apex");
    EXPECT_EQ(finding->evidence["version"], "0.1");
    EXPECT_EQ(finding->evidence["module"], "amp_C");
    EXPECT_EQ(finding->evidence["location"], site);
    EXPECT_TRUE(proposes(*finding, "--build-option=--cuda_ext"));
    world.text("venv/lib/python3.11/site-packages/amp_C.cpython-311-x86_64-linux-gnu.so", "");
    EXPECT_FALSE(told(process)) << "it is there: another failure";
}

TEST(BuildText, LeavesToTheStepsWhatTheyTellBetter) {
    const ElfWorld world;
    EXPECT_FALSE(told(
        python_that_raised(world, "RuntimeError",
                           "/x/y.h:10:10: fatal error: cusparse.h: No such file or directory")));
}

TEST(BuildText, IsSilentOfAnythingElse) {
    const ElfWorld world;
    for (const char* message :
         {"", "cuda", "'CUDA_HOME'", "No module named 'pandas'", "ninja turtles are required"}) {
        EXPECT_FALSE(told(python_that_raised(world, "RuntimeError", message))) << message;
    }
}

}  // namespace
}  // namespace cudiag
