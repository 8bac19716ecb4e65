#include "diagnose/cuda/running.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>
#include <fstream>

#include "diagnose/cuda/running_rules.h"
#include "diagnose/cuda/suspects.h"
#include "diagnose/knowledge/cuda.h"
#include "diagnose/knowledge/gpu_fault_tables.h"
#include "diagnose/knowledge/tables.h"
#include "tests/unit/diagnose/cuda/facts.h"

namespace cudiag {
namespace {

using testing::advises;
using testing::raised;

constexpr std::uint64_t kSecond = 1'000'000'000;

CudaLaunch launched(std::uint64_t at, std::uint64_t stream, const char* kernel,
                    std::uint32_t mark = 0) {
    CudaLaunch launch;
    launch.time_ns = launch.ticks = at;
    launch.tid = 7;
    launch.stream = stream;
    launch.handle = kernel[3] == 'g' ? 1 : 2;
    launch.kernel = kernel;
    launch.shape = {.grid = {4, 1, 1}, .block = {32, 1, 1}, .shared_bytes = 0};
    launch.mark = mark;
    return launch;
}

constexpr const char* kGood = "_Z4goodPfi";
constexpr const char* kWrong = "_Z5wrongPfm";

FailedCudaCall failed_with(std::uint64_t error, std::uint64_t at = kSecond) {
    FailedCudaCall call;
    call.name = "cuStreamSynchronize";
    call.error = error;
    call.time_ns = at;
    call.tid = 7;
    return call;
}

Process dead(std::uint64_t error = 700) {
    Process process;
    process.pid = 1;
    process.argv = {"./train", "a b"};
    process.end = EndHow::exit;
    process.end_status = 1;
    process.end_time_ns = 2 * kSecond;
    process.cuda_failures = {failed_with(error)};
    return process;
}

Finding told_of_gpu(const Process& process) {
    const auto finding = cuda_gave_an_error(process);
    EXPECT_TRUE(finding);
    return finding.value_or(Finding{});
}

TEST(CudaAsyncError, NamesTheOnlyLaunchThatWasPending) {
    Process process = dead();
    process.launches = {launched(1, 1, kGood), launched(2, 1, kWrong)};
    process.launches[0].done = true;
    const Finding finding = told_of_gpu(process);
    EXPECT_EQ(finding.slug, "cuda-async-error");
    EXPECT_EQ(finding.evidence["suspects"].size(), 1U);
    EXPECT_EQ(finding.evidence["suspects"][0]["kernel"], "wrong");
    EXPECT_EQ(finding.evidence["suspects"][0]["signature"], "wrong(float*, unsigned long)");
    EXPECT_NE(finding.title.find("wrong"), std::string::npos) << finding.title;
    EXPECT_FALSE(advises(finding, "CUDIAG_TRACK"));
    EXPECT_TRUE(advises(finding, "compute-sanitizer --tool memcheck ./train 'a b'"));
}

TEST(CudaAsyncError, OfManyTellsHowToHaveItNamedAndClaimsNone) {
    Process process = dead();
    process.launches = {launched(3, 2, kGood), launched(1, 1, kGood), launched(2, 1, kWrong),
                        launched(4, 1, kGood)};
    process.launches[3].capturing = true;
    const Finding finding = told_of_gpu(process);
    EXPECT_EQ(finding.evidence["pending"], 3);
    EXPECT_EQ(finding.evidence["streams"], 2);
    EXPECT_EQ(finding.evidence["kernels"][0], "good (2x)");
    EXPECT_NE(finding.title.find("one of 3 launches"), std::string::npos) << finding.title;
    EXPECT_TRUE(advises(finding, "export CUDIAG_TRACK=1"));
    EXPECT_EQ(finding.limits.find("overwritten"), std::string::npos);
    process.launches_lost = 10;
    EXPECT_NE(told_of_gpu(process).limits.find("overwritten"), std::string::npos);
}

TEST(CudaAsyncError, OfMarksTakesTheFirstUnfinishedOfEachStreamTheOldestFirst) {
    Process process = dead();
    process.tracked = true;
    process.launches = {launched(5, 2, kGood, 1), launched(1, 1, kGood, 1),
                        launched(2, 1, kWrong, 2), launched(6, 1, kGood, 3),
                        launched(7, 2, kGood, 2)};
    process.launches[1].done = true;  // as the facts tell of marks that were written
    const auto c = running_case_of(process);
    ASSERT_TRUE(c);
    const Suspects suspects = suspects_of(*c);
    EXPECT_EQ(suspects.pinned, Pinned::marked);
    ASSERT_EQ(suspects.launches.size(), 2U);
    EXPECT_EQ(suspects.launches[0]->kernel, kWrong);
    process.launches.push_back(launched(8, 3, kGood));  // a stream that bears no marks
    const auto other = running_case_of(process);
    EXPECT_EQ(suspects_of(*other).pinned, Pinned::no);
}

TEST(CudaAsyncError, OfAWaitBehindTheLaunchNamesThatLaunch) {
    Process process = dead();
    process.launches = {launched(1, 1, kWrong), launched(2, 1, kGood), launched(3, 1, kWrong)};
    process.cuda_failures.front().waited = true;
    process.cuda_failures.front().handle = 2;
    const auto c = running_case_of(process);
    const Suspects suspects = suspects_of(*c);
    EXPECT_EQ(suspects.pinned, Pinned::waited);
    ASSERT_EQ(suspects.launches.size(), 1U);
    EXPECT_EQ(suspects.launches[0], &c->process.launches[2]);
}

TEST(CudaAsyncError, IsToldOfTheFirstOneAlsoWhereTheProgramWentOn) {
    Process process = dead();
    process.cuda_failures.push_back(failed_with(719, 2 * kSecond));
    process.end_status = 0;
    const Finding finding = told_of_gpu(process);
    EXPECT_EQ(finding.evidence["code"], 700);
    EXPECT_EQ(finding.confidence, Confidence::certain);
    EXPECT_NE(finding.title.find("is not known"), std::string::npos) << finding.title;
}

TEST(CudaAsyncError, TellsWhatTorchChecksInItsKernels) {
    Process process = dead(710);
    process.exceptions = {raised("CUDA error: device-side assert triggered")};
    process.launches = {
        launched(1, 1, "_ZN2at6native24index_elementwise_kernelILi128ELi4EZNS0_1fEvEUliE_EEvlT1_")};
    const Finding finding = told_of_gpu(process);
    EXPECT_TRUE(advises(finding, "an index is outside of the tensor"));
    const KernelHint* embedding =
        kernel_hint("void at::native::vectorized_gather_kernel<16, long>(char*, char*)", 710);
    ASSERT_NE(embedding, nullptr);
    EXPECT_EQ(embedding->name, "torch-index");
    EXPECT_EQ(kernel_hint("void at::native::vectorized_gather_kernel<16, long>(char*)", 700),
              nullptr);
    process.launches.push_back(launched(2, 1, kGood));
    EXPECT_FALSE(advises(told_of_gpu(process), "an index is outside of the tensor"))
        << "not known to be this kernel";
}

TEST(CudaRunning, TellsNothingOfProbesAndOfOtherFailures) {
    Process process = dead(2);
    process.end_status = 0;
    EXPECT_FALSE(cuda_gave_an_error(process)) << "the program lived on";
    process.end_status = 1;
    process.exceptions = {raised("list index out of range")};
    EXPECT_FALSE(cuda_gave_an_error(process)) << "it ended of something else";
    process.exceptions = {raised("CUDA error: no CUDA-capable device is detected")};
    EXPECT_FALSE(cuda_gave_an_error(process)) << "a CUDA that did not start";
    process.cuda_failures.clear();
    process.exceptions.clear();
    EXPECT_FALSE(cuda_gave_an_error(process));
}

TEST(KernelNames, AreBriefInALine) {
    EXPECT_EQ(brief_kernel_name(""), "a kernel whose name is not known");
    EXPECT_EQ(brief_kernel_name("triton_poi_fused_add_0"), "triton_poi_fused_add_0");
    EXPECT_EQ(brief_kernel_name("_Z8harmlessPfi"), "harmless");
    EXPECT_EQ(brief_kernel_name("_ZN2at6native29vectorized_elementwise_kernelILi4ENS0_"
                                "11FillFunctorIfEESt5arrayIPcLm1EEEEviT0_T1_"),
              "at::native::vectorized_elementwise_kernel<...>");
}

TEST(GpuFaults, AreErrorsThatStickAndEachHasASource) {
    EXPECT_TRUE(gpu_fault_problems().empty());
    EXPECT_GE(all_gpu_faults().size(), 9U);
    for (const GpuFault* fault : all_gpu_faults()) {
        const CudaError* known = cuda_error(fault->code);
        ASSERT_NE(known, nullptr) << fault->code;
        EXPECT_TRUE(known->sticky) << fault->code;
        EXPECT_FALSE(fault->source.empty());
    }
    EXPECT_THROW(parse_gpu_faults("{}"), KnowledgeError);
    EXPECT_THROW(parse_gpu_faults(
                     R"({"faults": [{"code": "x", "title": "t", "source": "s"}], "hints": []})"),
                 KnowledgeError);
    EXPECT_THROW(parse_gpu_faults(R"({"faults": [{"code": "700", "title": "t", "source": "s"}],
        "hints": [{"name": "n", "kernel": "(", "codes": ["710"], "text": "t", "source": "s"}]})"),
                 KnowledgeError);
}

FailedCudaCall on_h200(std::uint64_t error) {
    FailedCudaCall call = failed_with(error);
    call.device = CudaDevice{.ordinal = 0,
                             .name = "NVIDIA H200",
                             .limits = {{1, 1024},
                                        {2, 1024},
                                        {3, 1024},
                                        {4, 64},
                                        {5, 2147483647},
                                        {6, 65535},
                                        {7, 65535},
                                        {8, 49152},
                                        {12, 65536},
                                        {16, 132},
                                        {75, 9},
                                        {76, 0},
                                        {97, 232448}}};
    call.function_limits = {{0, 1024}, {1, 0}, {3, 0}, {4, 20}, {8, 49152}};
    return call;
}

Process refused(LaunchShape shape, std::uint64_t error = 1) {
    Process process = dead();
    FailedCudaCall call = on_h200(error);
    call.name = "cuLaunchKernel";
    call.kernel = kWrong;
    call.shape = shape;
    process.cuda_failures = {call};
    return process;
}

TEST(CudaLaunchConfig, SaysWhichLimitIsExceeded) {
    const auto title = [](LaunchShape shape, std::uint64_t error = 1) {
        const Finding finding = told_of_gpu(refused(shape, error));
        EXPECT_EQ(finding.slug, "cuda-launch-config");
        EXPECT_FALSE(finding.fixes.empty()) << finding.title;
        return finding.title;
    };
    EXPECT_NE(title({.grid = {1, 1, 1}, .block = {2048, 1, 1}}).find("block x is 2048"),
              std::string::npos);
    EXPECT_NE(title({.grid = {1, 70000, 1}, .block = {32, 1, 1}}).find("grid y is 70000"),
              std::string::npos);
    EXPECT_NE(title({.grid = {0, 1, 1}, .block = {32, 1, 1}}).find("grid x is 0"),
              std::string::npos);
    EXPECT_NE(title({.grid = {1, 1, 1}, .block = {64, 64, 1}}).find("has 4096 threads"),
              std::string::npos);
    EXPECT_NE(title({.grid = {1, 1, 1}, .block = {32, 1, 1}, .shared_bytes = 100000})
                  .find("49152 are allowed"),
              std::string::npos);
    EXPECT_NE(
        title({.grid = {1, 1, 1}, .block = {32, 1, 1}, .shared_bytes = 300000}).find("has 232448"),
        std::string::npos);
    Process process = refused({.grid = {1, 1, 1}, .block = {1024, 1, 1}}, 701);
    process.cuda_failures.front().function_limits = {{0, 512}, {4, 128}};
    EXPECT_NE(told_of_gpu(process).title.find("1024 threads with 128 registers"),
              std::string::npos);
    const Finding none = told_of_gpu(refused({.grid = {1, 1, 1}, .block = {32, 1, 1}}));
    EXPECT_TRUE(none.fixes.empty());
    EXPECT_EQ(none.confidence, Confidence::likely);
}

TEST(CudaLaunchConfig, DoesNotSpeakOfAnInvalidArgumentOfAnotherCall) {
    Process process = dead(1);
    process.exceptions = {raised("CUDA error: invalid argument")};
    EXPECT_FALSE(cuda_gave_an_error(process));
}

}  // namespace
}  // namespace cudiag
