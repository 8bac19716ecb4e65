// Allocations that failed: what they failed of.
#include <fmt/core.h>

#include "tests/unit/diagnose/cuda/running_facts.h"

namespace cudiag {
namespace {

using testing::advises;
using testing::failed_call;
using testing::h200;
using testing::has;
using testing::raised;
using testing::said_by;
using testing::solver;
using testing::trainer;

constexpr std::uint64_t kGiB = std::uint64_t{1} << 30;

FailedCudaCall allocation(std::uint64_t asked, std::uint64_t free, std::uint64_t total) {
    FailedCudaCall call = failed_call("cuMemAlloc_v2", 2);
    call.bytes_asked = asked;
    call.bytes_free = free;
    call.bytes_total = total;
    call.device = h200();
    return call;
}

Process told(const std::string& words, const std::string& type = "torch.OutOfMemoryError") {
    Process process = trainer();
    process.exceptions = {raised(words, type)};
    return process;
}

Finding found_of(const Process& process) {
    const auto finding = said_by(cuda_out_of_memory, process);
    EXPECT_TRUE(finding);
    return finding.value_or(Finding{});
}

Process solver_with(const FailedCudaCall& call) {
    Process process = solver();
    process.cuda_failures = {call};
    return process;
}

// As torch writes it, of a training on a shared GPU.
const char* const kShared =
    "CUDA out of memory. Tried to allocate 1.24 GiB. GPU 2 has a total capacity of 139.80 GiB of "
    "which 623.38 MiB is free. Including non-PyTorch memory, this process has 123.29 GiB memory in "
    "use. Process 2951793 has 15.88 GiB memory in use. Of the allocated memory 121.00 GiB is "
    "allocated by PyTorch, and 512.00 MiB is reserved by PyTorch but unallocated. If reserved but "
    "unallocated memory is large try setting PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True to "
    "avoid fragmentation.";

// The same in a container, where torch does not know its own number.
const char* const kContainer =
    "CUDA out of memory. Tried to allocate 256.00 MiB. GPU 0 has a total capacity of 47.53 GiB of "
    "which 16.88 MiB is free. Process 3652628 has 47.51 GiB memory in use. Of the allocated memory "
    "47.14 GiB is allocated by PyTorch, and 57.79 MiB is reserved by PyTorch but unallocated.";

const char* const kPieces =
    "CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 79.25 GiB of "
    "which 1.06 GiB is free. Process 12345 has 78.18 GiB memory in use. Of the allocated memory "
    "70.00 GiB is allocated by PyTorch, and 7.50 GiB is reserved by PyTorch but unallocated.";

}  // namespace

TEST(CudaOutOfMemory, NamesOtherProcessesWhereTheTextKnowsThisOne) {
    const Finding finding = found_of(told(kShared));
    EXPECT_TRUE(has(finding.title, "1.3 GB did not fit: other processes hold 17.1 GB"))
        << finding.title;
    EXPECT_TRUE(advises(finding, "nvidia-smi --query-compute-apps"));
    EXPECT_FALSE(advises(finding, "expandable_segments")) << "512 MiB in pieces do not make 1.24";
    const auto& evidence = finding.evidence;
    EXPECT_EQ(evidence["asked_bytes"], 1331439861);  // of 1.24 GiB
    EXPECT_EQ(evidence["processes_on_gpu"][0]["pid"], 2951793);
    EXPECT_NEAR(evidence["this_process_bytes"].get<double>(), 123.29 * kGiB, kGiB / 100.0);
    EXPECT_EQ(evidence["code"], 2);
}

TEST(CudaOutOfMemory, InAContainerDoesNotTakeItselfForAnother) {
    const Finding finding = found_of(told(kContainer));
    EXPECT_TRUE(has(finding.title, "268 MB of the GPU's memory were asked for")) << finding.title;
    EXPECT_FALSE(has(finding.title, "other processes")) << finding.title;
    EXPECT_FALSE(finding.evidence.contains("other_processes_bytes"));
    ASSERT_EQ(finding.fixes.size(), 1U);
    EXPECT_TRUE(advises(finding, "a smaller batch")) << "torch itself has 47 of 48 GiB in use";
    EXPECT_TRUE(has(finding.limits, "one of them may be this one")) << finding.limits;
}

TEST(CudaOutOfMemory, AnotherThatHoldsLessThanTorchItselfIsAnother) {
    const Finding finding = found_of(
        told("CUDA out of memory. Tried to allocate 4.00 GiB. GPU 0 has a total capacity of 79.25 "
             "GiB of which 1.00 GiB is free. Process 7 has 20.00 GiB memory in use. Of the "
             "allocated memory 50.00 GiB is allocated by PyTorch, and 1.00 GiB is reserved by "
             "PyTorch but unallocated."));
    EXPECT_TRUE(has(finding.title, "other processes hold 21.5 GB")) << finding.title;
    EXPECT_FALSE(has(finding.limits, "may be this one"));
}

TEST(CudaOutOfMemory, OthersThatHoldTooLittleAreNotTheCause) {
    std::string words = kShared;
    words.replace(words.find("15.88 GiB"), 9, "12.00 MiB");
    const Finding finding = found_of(told(words));
    EXPECT_FALSE(has(finding.title, "other processes")) << finding.title;
    EXPECT_TRUE(has(finding.title, "this process itself holds 132.4 GB")) << finding.title;
    EXPECT_FALSE(advises(finding, "nvidia-smi"));
    EXPECT_TRUE(advises(finding, "a smaller batch"));
}

TEST(CudaOutOfMemory, CountsOthersThatTheTextDoesNotList) {
    // Processes of other containers, of which NVML tells nothing.
    const char* const words =
        "CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 79.25 GiB "
        "of which 1.06 GiB is free. Including non-PyTorch memory, this process has {} GiB memory "
        "in use. Of the allocated memory 30.00 GiB is allocated by PyTorch, and 512.00 MiB is "
        "reserved by PyTorch but unallocated.";
    const Finding finding = found_of(told(fmt::format(fmt::runtime(words), "38.09")));
    EXPECT_TRUE(has(finding.title, "other processes hold 43.1 GB")) << finding.title;
    EXPECT_EQ(finding.evidence["other_processes_bytes"].get<std::uint64_t>() / kGiB, 40U);

    const Finding alone = found_of(told(fmt::format(fmt::runtime(words), "77.50")));
    EXPECT_FALSE(has(alone.title, "other processes")) << "the driver takes some itself";
    EXPECT_FALSE(alone.evidence.contains("other_processes_bytes"));
}

TEST(CudaOutOfMemory, SeesMemoryInPieces) {
    Process process = told(kPieces);
    const Finding finding = found_of(process);
    EXPECT_TRUE(has(finding.title, "2.1 GB did not fit, though PyTorch holds 8.1 GB"))
        << finding.title;
    EXPECT_TRUE(advises(finding, "export PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True"));

    process.environment["PYTORCH_CUDA_ALLOC_CONF"] = "max_split_size_mb:512";
    EXPECT_TRUE(advises(found_of(process), "max_split_size_mb:512,expandable_segments:True"));
    EXPECT_EQ(found_of(process).evidence["pytorch_cuda_alloc_conf"], "max_split_size_mb:512");

    process.environment["PYTORCH_CUDA_ALLOC_CONF"] = "expandable_segments:False";
    const Finding off = found_of(process);
    EXPECT_TRUE(advises(off, "=expandable_segments:True")) << off.fixes.at(0).command;
    EXPECT_FALSE(advises(off, "False"));

    for (const char* value : {"expandable_segments:True", "backend:cudaMallocAsync"}) {
        process.environment["PYTORCH_CUDA_ALLOC_CONF"] = value;
        EXPECT_TRUE(found_of(process).fixes.empty()) << value;
    }
}

TEST(CudaOutOfMemory, SeesWhatCannotFitAtAnyTime) {
    // On an H200: torch.empty(2**43).
    const Finding finding = found_of(
        told("CUDA out of memory. Tried to allocate 16384.00 GiB. GPU 0 has a total capacity of "
             "139.80 GiB of which 139.29 GiB is free."));
    EXPECT_TRUE(has(finding.title, "they fit at no time")) << finding.title;
    EXPECT_EQ(finding.fixes.size(), 1U);
    EXPECT_TRUE(finding.fixes.at(0).command.empty());

    FailedCudaCall call = allocation(1ULL << 45, 140 * kGiB, 141 * kGiB);
    EXPECT_TRUE(has(found_of(solver_with(call)).title, "fit at no time"));
    call.name = "cuMemAllocManaged";
    EXPECT_FALSE(has(found_of(solver_with(call)).title, "fit at no time")) << "it is paged";
}

TEST(CudaOutOfMemory, SeesALimitOfTheProgramsOwn) {
    const Finding cupy = found_of(
        told("Out of memory allocating 3,000,000,000 bytes (allocated so far: 0 bytes, limit set "
             "to: 1,000,000,000 bytes).",
             "cupy.cuda.memory.OutOfMemoryError"));
    EXPECT_TRUE(has(cupy.title, "exceeded the limit of 1.0 GB")) << cupy.title;
    EXPECT_TRUE(advises(cupy, "set_limit"));

    const Finding torch = found_of(
        told("CUDA out of memory. Tried to allocate 1.00 GiB. GPU 0 has a total capacity of 79.15 "
             "GiB of which 70.00 GiB is free. 7.92 GiB allowed; Of the allocated memory 7.50 GiB "
             "is allocated by PyTorch, and 0 bytes is reserved by PyTorch but unallocated."));
    EXPECT_TRUE(has(torch.title, "limit of 8.5 GB")) << torch.title;

    // 2^64 - 1 is none.
    const Finding none = found_of(
        told("Out of memory allocating 285,296,072 bytes (allocated so far: 7,381,975,040 bytes, "
             "limit set to: 18,446,744,073,709,551,615 bytes)."));
    EXPECT_FALSE(has(none.title, "limit")) << none.title;
    EXPECT_FALSE(none.evidence.contains("limit_bytes"));
}

TEST(CudaOutOfMemory, SaysWhereThereWasEnough) {
    const Finding finding = found_of(solver_with(allocation(kGiB, 20 * kGiB, 140 * kGiB)));
    EXPECT_TRUE(
        has(finding.title, "the driver refused 1.1 GB, though 21.5 GB of 150.3 GB are free"))
        << finding.title;
    EXPECT_TRUE(finding.fixes.empty());
    EXPECT_TRUE(has(finding.limits, "why is not seen")) << finding.limits;
}

TEST(CudaOutOfMemory, OfAProgramWithoutWordsIsItsLastCall) {
    Process process = solver_with(allocation(20 * kGiB, 2 * kGiB, 140 * kGiB));
    const Finding finding = found_of(process);
    EXPECT_TRUE(has(finding.title, "21.5 GB of the GPU's memory were asked for, and 2.1 GB"))
        << finding.title;
    EXPECT_EQ(finding.confidence, Confidence::likely);
    EXPECT_EQ(finding.evidence["gpu"], "NVIDIA H200");
    EXPECT_EQ(finding.evidence["call"], "cuMemAlloc_v2");
    EXPECT_EQ(finding.evidence["asked_bytes"], 20 * kGiB);
    EXPECT_TRUE(advises(finding, "nvidia-smi")) << "who holds the rest is not known";
    EXPECT_TRUE(advises(finding, "if it is this program alone, ask for less"));

    process.end_status = 0;
    EXPECT_FALSE(said_by(cuda_out_of_memory, process)) << "it survived";
}

TEST(CudaOutOfMemory, IsSilentOfAFailureThatTheProcessSurvived) {
    Process process = trainer();
    process.cuda_failures = {allocation(2 * kGiB, kGiB, 140 * kGiB)};
    process.exceptions = {raised("'loss'", "KeyError")};
    EXPECT_FALSE(said_by(cuda_out_of_memory, process)) << "torch tried again, and it went well";
}

TEST(CudaOutOfMemory, TakesTheCallForWhatTheTextDoesNotTell) {
    Process process = told("RESOURCE_EXHAUSTED: Out of memory while trying to allocate 8.00GiB.",
                           "jax.errors.JaxRuntimeError");
    process.cuda_failures = {allocation(8 * kGiB, 3 * kGiB, 140 * kGiB)};
    EXPECT_TRUE(has(found_of(process).title, "3.2 GB of 150.3 GB are free"));

    // One of those before, with which it asked for less.
    process.cuda_failures[0].bytes_asked = kGiB;
    EXPECT_TRUE(has(found_of(process).limits, "how much was free is not known"));

    // Long before: as it started, JAX takes what it gets.
    process.cuda_failures[0].bytes_asked = 8 * kGiB;
    process.cuda_failures[0].time_ns -= 60'000'000'000;
    EXPECT_TRUE(has(found_of(process).limits, "how much was free is not known"));
}

TEST(CudaOutOfMemory, OfWordsWithoutCudaNeedsADriver) {
    Process process = told(
        "RESOURCE_EXHAUSTED: Out of memory while trying to allocate 33762398024 "
        "bytes.");
    EXPECT_TRUE(said_by(cuda_out_of_memory, process));
    process.cuda_driver.reset();
    EXPECT_FALSE(said_by(cuda_out_of_memory, process)) << "of the host's memory, by all we know";
}

TEST(CudaOutOfMemory, WithoutFiguresSaysSo) {
    const Finding words = found_of(told("CUDA error: out of memory"));
    EXPECT_TRUE(has(words.title, "a call that was not seen")) << words.title;
    EXPECT_EQ(words.evidence["asked_bytes"], "not known");
    EXPECT_TRUE(words.fixes.empty());

    FailedCudaCall context = failed_call("cuDevicePrimaryCtxRetain", 2);
    EXPECT_TRUE(has(found_of(solver_with(context)).title, "cuDevicePrimaryCtxRetain"));
}

TEST(CudaOutOfMemory, DoesNotBelieveWhatNvmlDoesNotKnow) {
    // vLLM under WSL.
    const Finding finding = found_of(
        told("CUDA out of memory. Tried to allocate 34.00 MiB. GPU 0 has a total capacity of 4.00 "
             "GiB of which 0 bytes is free. Including non-PyTorch memory, this process has "
             "17179869184.00 GiB memory in use. Of the allocated memory 3.35 GiB is allocated by "
             "PyTorch, and 12.23 MiB is reserved by PyTorch but unallocated."));
    EXPECT_FALSE(finding.evidence.contains("this_process_bytes"));
    EXPECT_TRUE(has(finding.title, "this program itself has 3.6 GB in use")) << finding.title;
}

TEST(CudaOutOfMemory, IsSilentOfOtherCodes) {
    const Process process = told("CUDA error: invalid argument", "RuntimeError");
    ASSERT_TRUE(running_case_of(process));
    EXPECT_FALSE(said_by(cuda_out_of_memory, process));
}

TEST(CudaOutOfMemory, IsSilentWhereTheGpuWasLostFirst) {
    Process process = told("CUDA out of memory. Tried to allocate 1.00 GiB.");
    process.cuda_failures = {failed_call("cuStreamSynchronize", 700)};
    EXPECT_FALSE(said_by(cuda_out_of_memory, process));
}

}  // namespace cudiag
