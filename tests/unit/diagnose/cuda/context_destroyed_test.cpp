// A context that was destroyed while it was used.
#include "diagnose/process/rules.h"
#include "tests/unit/diagnose/cuda/running_facts.h"

namespace cudiag {
namespace {

using testing::advises;
using testing::failed_call;
using testing::has;
using testing::kEnd;
using testing::raised;
using testing::refused;
using testing::said_by;
using testing::solver;
using testing::trainer;

ContextGone gone(std::uint64_t us_before_end,
                 const std::string& call = "cuDevicePrimaryCtxReset_v2") {
    ContextGone context;
    context.time_ns = kEnd - us_before_end * 1000;
    context.call = call;
    context.caller = "/site/nvidia/cu13/lib/libcudart.so.13";
    return context;
}

// The launch of axpy 2 ms before the end.
Process failed_with(std::uint64_t error) {
    Process process = solver();
    process.cuda_failures = {refused(error, {.grid = {8, 1, 1}, .block = {256, 1, 1}})};
    return process;
}

}  // namespace

TEST(CudaContextDestroyed, NamesTheCallThatDestroyedIt) {
    Process process = failed_with(709);
    process.contexts_gone = {gone(5000)};
    const auto finding = said_by(cuda_context_destroyed, process);
    ASSERT_TRUE(finding);
    EXPECT_EQ(finding->title,
              "the launch of axpy failed, 3.0 ms after a context of this process was destroyed by "
              "cuDevicePrimaryCtxReset_v2, which is what cudaDeviceReset calls");
    EXPECT_EQ(finding->evidence["destroyed_at"], "/site/nvidia/cu13/lib/libcudart.so.13");
    EXPECT_EQ(finding->evidence["kernel"], "axpy(float*, int)");
    EXPECT_TRUE(advises(*finding, "when nobody in the process uses the GPU any more"));
}

TEST(CudaContextDestroyed, TellsThePlaceInPython) {
    Process process = failed_with(709);
    process.contexts_gone = {gone(5000, "cuCtxDestroy_v2")};
    process.contexts_gone[0].python = {{"/w/clean.py", 7, "close"}};
    const auto finding = said_by(cuda_context_destroyed, process);
    ASSERT_TRUE(finding);
    EXPECT_EQ(finding->evidence["destroyed_at"], "/w/clean.py:7 in close");
    EXPECT_TRUE(has(finding->title, "destroyed by cuCtxDestroy_v2")) << finding->title;
}

TEST(CudaContextDestroyed, IsLikelyWhereTheErrorHasOtherCausesToo) {
    Process process = failed_with(400);
    process.contexts_gone = {gone(5000)};
    const auto finding = said_by(cuda_context_destroyed, process);
    ASSERT_TRUE(finding);
    EXPECT_EQ(finding->confidence, Confidence::likely);
    EXPECT_TRUE(has(finding->limits, "order of the calls")) << finding->limits;
}

// As torch is told after cudaDeviceReset (an H200): by cudart, which does not ask the driver.
TEST(CudaContextDestroyed, NeedsNoCallOfTheDriver) {
    Process process = trainer();
    process.exceptions = {raised("CUDA error: invalid argument", "torch.AcceleratorError")};
    process.contexts_gone = {gone(5000)};
    const auto finding = said_by(cuda_context_destroyed, process);
    ASSERT_TRUE(finding);
    EXPECT_TRUE(has(finding->title, "CUDA gave an error (")) << finding->title;
    EXPECT_TRUE(has(finding->title, "4.0 ms after")) << finding->title;
    EXPECT_EQ(finding->confidence, Confidence::likely);
    process.contexts_gone = {gone(500)};
    EXPECT_FALSE(said_by(cuda_context_destroyed, process)) << "after the error";
}

TEST(CudaContextDestroyed, IsToldOfAProcessThatCrashed) {
    Process process = solver();
    process.exceptions.clear();
    process.end = EndHow::none;
    process.contexts_gone = {gone(5000)};
    const auto finding = process_killed(process, {});
    ASSERT_TRUE(finding);
    EXPECT_TRUE(has(finding->title, "; cuDevicePrimaryCtxReset_v2 had destroyed a context"))
        << finding->title;
    process.contexts_gone = {gone(5000, "cuCtxDestroy_v2")};
    EXPECT_FALSE(has(process_killed(process, {})->title, "destroyed")) << "a private one";
}

TEST(CudaContextDestroyed, IsNoCauseOfWhatFailedBefore) {
    Process process = failed_with(400);
    process.contexts_gone = {gone(1000)};
    EXPECT_FALSE(said_by(cuda_context_destroyed, process));
    process.contexts_gone.clear();
    EXPECT_FALSE(said_by(cuda_context_destroyed, process));
}

// TensorRT, decoders and PyCUDA make contexts of their own and destroy them; a launch that is wrong
// by itself, or a foreign handle, has another cause.
TEST(CudaContextDestroyed, APrivateContextIsNoCauseOfWhatOthersDoWrong) {
    for (const std::uint64_t error : {1, 400}) {
        Process process = failed_with(error);
        process.contexts_gone = {gone(5000, "cuCtxDestroy_v2")};
        EXPECT_FALSE(said_by(cuda_context_destroyed, process)) << error;
    }
    Process process = failed_with(201);  // as an H200 answers after cuCtxDestroy
    process.contexts_gone = {gone(5000, "cuCtxDestroy_v2")};
    const auto finding = said_by(cuda_context_destroyed, process);
    ASSERT_TRUE(finding);
    EXPECT_EQ(finding->confidence, Confidence::likely);
}

TEST(CudaContextDestroyed, ALaunchThatTheDriverRefusedForItselfIsNone) {
    Process process = failed_with(1);
    process.contexts_gone = {gone(5000)};
    EXPECT_FALSE(said_by(cuda_context_destroyed, process)) << "of 1 only cudart's own";
}

TEST(CudaContextDestroyed, IsNoCauseOfOtherErrors) {
    Process process = failed_with(701);
    process.contexts_gone = {gone(5000)};
    EXPECT_FALSE(said_by(cuda_context_destroyed, process));
    // A call that failed so and was handled, before another end.
    process = trainer();
    process.contexts_gone = {gone(5000)};
    process.cuda_failures = {failed_call("cuStreamQuery", 400)};
    process.exceptions = {raised("CUDA error: out of memory", "torch.AcceleratorError")};
    EXPECT_FALSE(said_by(cuda_context_destroyed, process));
}

}  // namespace cudiag
