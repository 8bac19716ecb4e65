// Which failures are those of a GPU that ran, and which call gave the error.
#include "diagnose/cuda/running.h"

#include "tests/unit/diagnose/cuda/running_facts.h"

namespace cudiag {
namespace {

using testing::failed_call;
using testing::raised;
using testing::reported;
using testing::solver;
using testing::trainer;

constexpr const char* kIllegal = "CUDA error: an illegal memory access was encountered";

}  // namespace

TEST(RunningCase, OfAnErrorThatSticksIsTheFirstCallThatGaveIt) {
    Process process = trainer();
    process.cuda_failures = {failed_call("cuMemAlloc_v2", 2), reported(700),
                             failed_call("cuLaunchKernel", 700), failed_call("cuMemFree_v2", 719)};
    process.exceptions = {raised(kIllegal, "torch.AcceleratorError")};
    const auto c = running_case_of(process);
    ASSERT_TRUE(c);
    EXPECT_TRUE(c->sticky);
    EXPECT_EQ(c->failed, &process.cuda_failures[1]);
    EXPECT_EQ(c->told.code, 700);
    EXPECT_EQ(c->told.call, "cuStreamSynchronize");
    EXPECT_EQ(c->told.error, std::string{"torch.AcceleratorError: "} + kIllegal)
        << "the program's own words where they tell the same";
}

TEST(RunningCase, OfAnErrorThatSticksTellsItWhateverTheProgramSaid) {
    Process process = trainer();
    process.cuda_failures = {reported(700)};
    process.exceptions = {raised("CUDA out of memory. Tried to allocate 2.00 GiB.")};
    const auto c = running_case_of(process);
    ASSERT_TRUE(c);
    EXPECT_EQ(c->told.code, 700);
    EXPECT_TRUE(c->told.inferred.empty());

    process.exceptions = {raised("'name'", "KeyError")};
    const auto other = running_case_of(process);
    ASSERT_TRUE(other);
    EXPECT_EQ(other->told.code, 700);

    // By an exception that another came from: else a reason to be unsure.
    process.exceptions = {raised("the model failed"), raised(kIllegal)};
    const auto chained = running_case_of(process);
    ASSERT_TRUE(chained);
    EXPECT_EQ(chained->told.error, std::string{"RuntimeError: "} + kIllegal);
    EXPECT_TRUE(chained->told.inferred.empty());
}

TEST(RunningCase, OfAnErrorThatSticksNeedsNoFailure) {
    Process process = trainer();
    process.end_status = 0;
    process.cuda_failures = {reported(719)};
    const auto c = running_case_of(process);
    ASSERT_TRUE(c) << "it could not use the GPU any more";
    EXPECT_EQ(c->told.code, 719);
}

TEST(RunningCase, OfAnyOtherErrorIsTheLastCallWithIt) {
    Process process = trainer();
    process.cuda_failures = {failed_call("cuMemAlloc_v2", 2), failed_call("cuMemAllocAsync", 2),
                             failed_call("cuLaunchKernel", 1)};
    process.exceptions = {raised("CUDA out of memory. Tried to allocate 2.00 GiB.")};
    const auto c = running_case_of(process);
    ASSERT_TRUE(c);
    EXPECT_FALSE(c->sticky);
    EXPECT_EQ(c->failed, &process.cuda_failures[1]);
}

TEST(RunningCase, IsKnownByTheExceptionAlone) {
    Process process = trainer();
    process.exceptions = {raised(kIllegal)};
    const auto c = running_case_of(process);
    ASSERT_TRUE(c);
    EXPECT_TRUE(c->sticky);
    EXPECT_EQ(c->failed, nullptr);
}

TEST(RunningCase, OfAProgramWithoutWordsIsInferred) {
    Process process = solver();
    process.cuda_failures = {failed_call("cuMemAlloc_v2", 2)};
    const auto c = running_case_of(process);
    ASSERT_TRUE(c);
    EXPECT_FALSE(c->told.inferred.empty());
}

TEST(RunningCase, IsNoneOfAHealthyProcess) {
    Process process = trainer();
    process.end_status = 0;
    EXPECT_FALSE(running_case_of(process));
    process.cuda_failures = {failed_call("cuMemAlloc_v2", 2), failed_call("cuLaunchKernel", 1)};
    EXPECT_FALSE(running_case_of(process)) << "programs try things";
    process.end_status = 1;
    process.exceptions = {raised("'name'", "KeyError")};
    EXPECT_FALSE(running_case_of(process)) << "it ended of something else";
}

TEST(RunningCase, IsNoneOfACudaThatDidNotStart) {
    Process process = trainer();
    for (const char* words : {"No CUDA GPUs are available",
                              "CUDA error: CUDA driver version is insufficient for CUDA runtime "
                              "version"}) {
        process.exceptions = {raised(words)};
        EXPECT_FALSE(running_case_of(process)) << words;
    }
}

TEST(RunningFinding, HasWhatAllHave) {
    Process process = trainer();
    process.cuda_failures = {reported(700)};
    process.cuda_failures[0].log = {"first line", "second line"};
    process.cuda_failures[0].python = {{"step.py", 7, "step"}};
    process.exceptions = {raised(kIllegal)};
    const auto c = running_case_of(process);
    ASSERT_TRUE(c);
    const Finding finding = begin_finding(*c, "a-slug", "a title");
    EXPECT_EQ(finding.slug, "a-slug");
    EXPECT_EQ(finding.confidence, Confidence::certain);
    EXPECT_TRUE(finding.limits.empty());
    EXPECT_EQ(finding.tid, 8);
    EXPECT_EQ(finding.time_ns, process.cuda_failures[0].time_ns);
    EXPECT_EQ(finding.python.at(0).file, "step.py");
    EXPECT_EQ(finding.evidence["code_name"], "CUDA_ERROR_ILLEGAL_ADDRESS");
    EXPECT_EQ(finding.evidence["call"], "cuStreamSynchronize");
    EXPECT_EQ(finding.evidence["driver_log"].size(), 2U);
    EXPECT_TRUE(finding.evidence.contains("meaning"));
}

TEST(RunningFinding, WithoutTheCallHasThePlaceOfTheException) {
    Process process = trainer();
    process.exceptions = {raised(kIllegal)};
    const auto c = running_case_of(process);
    ASSERT_TRUE(c);
    const Finding finding = begin_finding(*c, "a-slug", "a title");
    EXPECT_EQ(finding.python.at(0).file, "train.py");
    EXPECT_EQ(finding.evidence["call"], "not seen");
    EXPECT_FALSE(finding.evidence.contains("driver_log"));
}

TEST(KernelName, IsBriefInALine) {
    EXPECT_EQ(brief_kernel_name(""), "a kernel whose name is not known");
    EXPECT_EQ(brief_kernel_name("triton_poi_fused_add_0"), "triton_poi_fused_add_0");
    EXPECT_EQ(brief_kernel_name("_Z8harmlessPfi"), "harmless");
    EXPECT_EQ(brief_kernel_name("_ZN2at6native29vectorized_elementwise_kernelILi4ENS0_"
                                "11FillFunctorIfEESt5arrayIPcLm1EEEEviT0_T1_"),
              "at::native::vectorized_elementwise_kernel<...>");
}

TEST(KernelName, IsInPlainWords) {
    EXPECT_EQ(kernel_name("_Z4axpyPfi"), "axpy(float*, int)");
    EXPECT_EQ(kernel_name("triton_poi_fused_add_0"), "triton_poi_fused_add_0");
    EXPECT_EQ(kernel_name("_Znonsense"), "_Znonsense");
    EXPECT_EQ(kernel_name(""), "a kernel whose name is not known");
}

}  // namespace cudiag
