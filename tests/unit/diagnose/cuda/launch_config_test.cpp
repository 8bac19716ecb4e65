// Launches that the driver refuses: which limit it was.
#include "tests/unit/diagnose/cuda/running_facts.h"

namespace cudiag {
namespace {

using testing::advises;
using testing::failed_call;
using testing::has;
using testing::raised;
using testing::refused;
using testing::said_by;
using testing::solver;
using testing::trainer;

Finding found_of(const FailedCudaCall& call) {
    Process process = solver();
    process.cuda_failures = {call};
    const auto finding = said_by(cuda_launch_config, process);
    EXPECT_TRUE(finding);
    return finding.value_or(Finding{});
}

std::string title_of(const FailedCudaCall& call) {
    return found_of(call).title;
}

}  // namespace

TEST(CudaLaunchConfig, NamesTheAxisOfTheGrid) {
    // F.scaled_dot_product_attention on a batch of 70000: "CUDA error: invalid configuration
    // argument" (pytorch#142228); the driver's code is 1, the runtime's 9.
    Process process = trainer();
    process.cuda_failures = {refused(1, {.grid = {1, 70000, 1}, .block = {32, 4, 1}})};
    process.cuda_failures[0].log = {"Grid Dimension Y of 70000 exceeds 65535"};
    process.exceptions = {
        raised("CUDA error: invalid configuration argument\n"
               "CUDA kernel errors might be asynchronously reported",
               "torch.AcceleratorError")};
    const auto finding = said_by(cuda_launch_config, process);
    ASSERT_TRUE(finding);
    EXPECT_EQ(finding->title,
              "the launch of axpy was refused: grid y is 70000, and NVIDIA H200 "
              "(compute capability 9.0) allows 65535");
    EXPECT_EQ(finding->confidence, Confidence::certain);
    EXPECT_TRUE(advises(*finding, "grid x"));
    const auto& evidence = finding->evidence;
    EXPECT_EQ(evidence["code"], 9);
    EXPECT_EQ(evidence["call"], "cuLaunchKernel");
    EXPECT_EQ(evidence["grid"], "(1, 70000, 1)");
    EXPECT_EQ(evidence["block"], "(32, 4, 1)");
    EXPECT_EQ(evidence["driver_log"][0], "Grid Dimension Y of 70000 exceeds 65535");
    EXPECT_EQ(evidence["exceeded"].size(), 1U);
    EXPECT_EQ(evidence["registers"], 24);
}

TEST(CudaLaunchConfig, NamesAnAxisOfTheBlock) {
    const Finding finding = found_of(refused(1, {.grid = {1, 1, 1}, .block = {2, 2, 128}}));
    EXPECT_TRUE(has(finding.title, "block z is 128")) << finding.title;
    EXPECT_TRUE(has(finding.title, "allows 64")) << finding.title;
    EXPECT_EQ(finding.fixes.size(), 1U);
}

TEST(CudaLaunchConfig, CountsTheThreadsOfABlock) {
    const Finding finding = found_of(refused(1, {.grid = {1, 1, 1}, .block = {64, 32, 1}}));
    EXPECT_TRUE(has(finding.title, "a block of (64, 32, 1) has 2048 threads")) << finding.title;
    EXPECT_FALSE(advises(finding, "__launch_bounds__")) << "no bounds let in more than 1024";
}

TEST(CudaLaunchConfig, SeesAnExtentOfNothing) {
    // "X must be nonzero" is the driver's word for it.
    const Finding finding = found_of(refused(1, {.grid = {0, 1, 1}, .block = {256, 1, 1}}));
    EXPECT_TRUE(has(finding.title, "grid x is 0")) << finding.title;
    EXPECT_TRUE(advises(finding, "empty input"));
    EXPECT_EQ(finding.fixes.size(), 1U);
}

TEST(CudaLaunchConfig, OfSharedMemoryTellsWhetherMoreCanBeAskedFor) {
    const LaunchShape some{.grid = {1, 1, 1}, .block = {128, 1, 1}, .shared_bytes = 100'000};
    const Finding can = found_of(refused(1, some));
    EXPECT_TRUE(has(can.title, "100000 bytes of dynamic shared memory, and 49152 are allowed"))
        << can.title;
    EXPECT_TRUE(advises(can, "cudaFuncAttributeMaxDynamicSharedMemorySize, 100000"));

    LaunchShape more = some;
    more.shared_bytes = 240'000;
    const Finding cannot = found_of(refused(1, more));
    EXPECT_TRUE(has(cannot.title, "240000 bytes of shared memory a block, and")) << cannot.title;
    EXPECT_TRUE(has(cannot.title, "has 232448")) << cannot.title;
    EXPECT_FALSE(advises(cannot, "cudaFuncSetAttribute"));

    // What the kernel has by itself counts.
    FailedCudaCall both = refused(1, some);
    both.shape->shared_bytes = 230'000;
    both.function_limits[1] = 4096;
    EXPECT_TRUE(has(title_of(both),
                    "234096 bytes of shared memory a block (230000 dynamic, 4096 "
                    "static)"))
        << title_of(both);

    // Asked for: then it is something else.
    FailedCudaCall asked = refused(1, some);
    asked.function_limits[8] = 100'000;
    EXPECT_TRUE(found_of(asked).fixes.empty());
}

TEST(CudaLaunchConfig, OfTooManyResourcesNamesTheRegisters) {
    // ThunderKittens#37: 162 registers x 512 threads.
    FailedCudaCall call = refused(701, {.grid = {64, 1, 1}, .block = {512, 1, 1}});
    call.function_limits = {{0, 384}, {4, 162}};
    const Finding finding = found_of(call);
    EXPECT_TRUE(has(finding.title, "512 threads with 162 registers each need more than the 65536"))
        << finding.title;
    EXPECT_TRUE(advises(finding, "at most 384 threads"));
    EXPECT_TRUE(advises(finding, "__launch_bounds__(512)"));
}

TEST(CudaLaunchConfig, TellsLaunchBoundsFromRegisters) {
    FailedCudaCall call = refused(701, {.grid = {64, 1, 1}, .block = {512, 1, 1}});
    call.function_limits = {{0, 256}, {4, 32}};
    EXPECT_TRUE(has(title_of(call), "compiled for at most 256 threads a block")) << title_of(call);
}

TEST(CudaLaunchConfig, OfACooperativeLaunchCountsBlocks) {
    FailedCudaCall call = refused(720, {.grid = {300, 2, 1}, .block = {256, 1, 1}});
    call.name = "cuLaunchCooperativeKernel";
    const Finding finding = found_of(call);
    EXPECT_TRUE(has(finding.title, "a cooperative launch of 600 blocks")) << finding.title;
    EXPECT_TRUE(advises(finding, "times the 132 multiprocessors"));
    call.device.reset();
    EXPECT_TRUE(advises(found_of(call), "times the number of multiprocessors"));
}

TEST(CudaLaunchConfig, TellsAllThatIsExceededAndTheFirstInTheTitle) {
    FailedCudaCall call =
        refused(1, {.grid = {1, 1, 70000}, .block = {2048, 1, 1}, .shared_bytes = 60'000});
    const Finding finding = found_of(call);
    EXPECT_EQ(finding.evidence["exceeded"].size(), 3U);
    EXPECT_TRUE(has(finding.title, "block x is 2048")) << finding.title;
}

TEST(CudaLaunchConfig, CannotBeTrickedByHugeExtents) {
    FailedCudaCall call = refused(1, {.grid = {1, 1, 1}, .block = {}});
    call.shape->block = {1ULL << 32, 1ULL << 32, 1};  // the product is 0 in 64 bits
    call.device->limits = {{1, 1024}};
    EXPECT_TRUE(has(title_of(call), "threads")) << title_of(call);
}

TEST(CudaLaunchConfig, WithoutAnExceededLimitSaysWhatWasSeenAndNoMore) {
    FailedCudaCall call = refused(1, {.grid = {8, 1, 1}, .block = {128, 1, 1}});
    const Finding plain = found_of(call);
    EXPECT_TRUE(has(plain.title, "refused (invalid argument); it exceeds no limit")) << plain.title;
    EXPECT_TRUE(plain.fixes.empty());
    EXPECT_EQ(plain.confidence, Confidence::likely);
    EXPECT_TRUE(has(plain.limits, "arguments of the kernel"));

    call.log = {"CUDA kernel axpy has 1 parameters but none provided"};
    const Finding told = found_of(call);
    EXPECT_TRUE(has(told.title, "has 1 parameters but none provided")) << told.title;
    EXPECT_TRUE(told.fixes.empty());

    // A cluster that does not divide the grid: only the driver sees the cluster.
    call.error = 912;
    call.log = {"cluster dimension does not divide the grid"};
    EXPECT_TRUE(has(title_of(call), "does not divide the grid"));
    EXPECT_TRUE(found_of(call).fixes.empty());
}

TEST(CudaLaunchConfig, IsSilentWithoutLimits) {
    FailedCudaCall call = refused(1, {.grid = {1, 70000, 1}, .block = {4096, 1, 1}});
    call.device.reset();
    call.function_limits.clear();
    EXPECT_TRUE(found_of(call).fixes.empty()) << "what this GPU allows is not known";
}

TEST(CudaLaunchConfig, OfOneToNinetyEightNeedsALaunch) {
    for (const char* words : {"CUDA error: invalid argument", "CUDA error: invalid device function",
                              "CUDA error: invalid configuration argument"}) {
        Process process = trainer();
        process.exceptions = {raised(words)};
        ASSERT_TRUE(running_case_of(process)) << words;
        EXPECT_FALSE(said_by(cuda_launch_config, process)) << words;
    }
    Process process = solver();
    process.cuda_failures = {failed_call("cuMemcpyHtoD_v2", 1)};
    ASSERT_TRUE(running_case_of(process));
    EXPECT_FALSE(said_by(cuda_launch_config, process)) << "a copy is no launch";
}

TEST(CudaLaunchConfig, OfResourcesIsToldWithoutTheLaunchToo) {
    Process process = trainer();
    process.exceptions = {raised("CUDA error: too many resources requested for launch")};
    const auto finding = said_by(cuda_launch_config, process);
    ASSERT_TRUE(finding);
    EXPECT_TRUE(has(finding->title, "which one was not seen"));
    EXPECT_EQ(finding->confidence, Confidence::likely);
    EXPECT_TRUE(finding->fixes.empty());
}

TEST(CudaLaunchConfig, DoesNotTakeAnotherFailureForTheOneThatWasTold) {
    const FailedCudaCall launch = refused(1, {.grid = {1, 70000, 1}, .block = {32, 1, 1}});
    Process process = trainer();
    process.exceptions = {raised("CUDA error: invalid argument")};
    process.cuda_failures = {launch, failed_call("cuMemcpyDtoH_v2", 1)};
    EXPECT_FALSE(said_by(cuda_launch_config, process)) << "the copy failed last";

    process.exceptions = {raised("CUDA error: invalid configuration argument")};
    process.cuda_failures = {launch, refused(701, {.grid = {1, 1, 1}, .block = {32, 1, 1}})};
    EXPECT_FALSE(said_by(cuda_launch_config, process)) << "the last launch failed otherwise";

    process.cuda_failures = {launch};
    process.exceptions[0].time_ns = launch.time_ns + 60'000'000'000;
    EXPECT_FALSE(said_by(cuda_launch_config, process)) << "a minute later";

    process.exceptions = {raised("'name'", "KeyError")};
    EXPECT_FALSE(said_by(cuda_launch_config, process)) << "it ended of something else";

    process.exceptions.clear();
    process.end_status = 0;
    EXPECT_FALSE(said_by(cuda_launch_config, process)) << "it ended well";
}

}  // namespace cudiag
