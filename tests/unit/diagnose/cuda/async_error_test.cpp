// Errors of a kernel that a later call reports, and what is said of them.
#include "diagnose/judge.h"
#include "tests/unit/diagnose/cuda/running_facts.h"

namespace cudiag {
namespace {

using testing::advises;
using testing::failed_call;
using testing::has;
using testing::launched;
using testing::raised;
using testing::reported;
using testing::said_by;
using testing::trainer;

constexpr const char* kOob = "_Z20writes_out_of_boundsPfm";
constexpr const char* kIndex =
    "_ZN2at6native16vectorized_gatherILi16ElEEvPcS2_PT0_illllb";  // torch's, of an embedding

Process with(std::vector<CudaLaunch> launches, std::uint64_t error = 700) {
    Process process = trainer();
    process.cuda_failures = {reported(error)};
    process.launches = std::move(launches);
    return process;
}

// Of the thread 3 of block 2 of a kernel, as the core dump of the GPU tells it.
GpuCore core_with(std::uint32_t code, const std::string& kernel) {
    GpuCore core;
    core.path = "/tmp/a b.core";
    core.device = "NVIDIA H200";
    core.driver = "580.159";
    core.cuda = "13.0";
    core.threads = 1;
    core.exceptions = {{.code = code,
                        .sm = 7,
                        .thread_known = true,
                        .block_index = {2, 0, 0},
                        .thread_index = {3, 0, 0},
                        .grid = {4, 1, 1},
                        .block = {256, 1, 1},
                        .kernel = kernel,
                        .pc = 0x7f0000b0,
                        .function = kernel,
                        .offset = 0xb0,
                        .source = "/src/fault.cu:26"}};
    return core;
}

Finding found_of(const Process& process) {
    const auto finding = said_by(cuda_async_error, process);
    EXPECT_TRUE(finding);
    return finding.value_or(Finding{});
}

}  // namespace

TEST(CudaAsyncError, NamesTheOnlyLaunchThatWasPending) {
    Process process = with({launched(kOob, 1500)});
    process.exceptions = {
        raised("CUDA error: an illegal memory access was encountered", "torch.AcceleratorError")};
    const Finding finding = found_of(process);
    EXPECT_EQ(finding.title,
              "a kernel read or wrote an address that is not mapped on the GPU (illegal memory "
              "access): writes_out_of_bounds");
    EXPECT_EQ(finding.confidence, Confidence::certain);
    const auto& evidence = finding.evidence;
    EXPECT_EQ(evidence["code"], 700);
    EXPECT_EQ(evidence["call"], "cuStreamSynchronize");
    EXPECT_EQ(evidence["pending"], 1);
    EXPECT_EQ(evidence["streams"], 1);
    ASSERT_EQ(evidence["suspects"].size(), 1U);
    const auto& suspect = evidence["suspects"][0];
    EXPECT_EQ(suspect["kernel"], "writes_out_of_bounds");
    EXPECT_EQ(suspect["signature"], "writes_out_of_bounds(float*, unsigned long)");
    EXPECT_EQ(suspect["grid"], "(4, 1, 1)");
    EXPECT_EQ(suspect["block"], "(256, 1, 1)");
    EXPECT_EQ(suspect["stream"], "default");
    EXPECT_EQ(suspect["us_before"], 1500);
    EXPECT_FALSE(suspect.contains("shared_bytes"));
    EXPECT_FALSE(evidence.contains("kernels")) << "there is one";
    EXPECT_TRUE(has(evidence["pinned_by"], "the only launch"));
    EXPECT_FALSE(advises(finding, "CUDIAG_TRACK")) << "it is named already";
    EXPECT_TRUE(advises(finding, "compute-sanitizer --tool memcheck"));
    EXPECT_TRUE(advises(finding, "train.py")) << "the command of this process";
    process.argv = {"./train", "a b"};
    EXPECT_TRUE(advises(found_of(process), "memcheck ./train 'a b'"));
}

TEST(CudaAsyncError, WhatSyncWaitedForIsTheOne) {
    Process process = with({launched("_Z4goodv", 900), launched(kOob, 500)});
    process.cuda_failures[0].waited = true;
    process.cuda_failures[0].handle = process.launches[1].handle;
    process.launches[1].python = {{"model.py", 12, "forward"}};
    process.launches[1].shape.shared_bytes = 128;
    const Finding finding = found_of(process);
    EXPECT_TRUE(has(finding.title, ": writes_out_of_bounds")) << finding.title;
    EXPECT_TRUE(has(finding.evidence["pinned_by"], "CUDIAG_SYNC=1"));
    EXPECT_EQ(finding.evidence["suspects"][0]["python"], "model.py:12 in forward");
    EXPECT_EQ(finding.evidence["suspects"][0]["shared_bytes"], 128);
    EXPECT_EQ(finding.python.at(0).file, "model.py") << "where it was launched, not reported";
    EXPECT_TRUE(finding.limits.empty()) << finding.limits;
}

TEST(CudaAsyncError, OfMarksNamesOneAStream) {
    CudaLaunch first = launched(kOob, 800, 0x100);
    CudaLaunch second = launched("_Z4goodv", 700, 0x200);
    CudaLaunch later = launched("_Z4goodv", 300, 0x100);
    first.mark = second.mark = 1;
    later.mark = 2;
    Process process = with({first, second, later});
    process.tracked = true;
    const Finding two = found_of(process);
    EXPECT_TRUE(has(two.title,
                    "writes_out_of_bounds, or what 1 other stream "
                    "ran at that time"))
        << two.title;
    EXPECT_EQ(two.evidence["suspects"].size(), 2U);
    EXPECT_EQ(two.evidence["suspects"][0]["stream"], "0x100");
    EXPECT_EQ(two.evidence["pending"], 3);
    EXPECT_FALSE(advises(two, "CUDIAG_TRACK"));

    process.launches.erase(process.launches.begin() + 1);
    const Finding one = found_of(process);
    EXPECT_TRUE(has(one.title, ": writes_out_of_bounds")) << one.title;
    EXPECT_FALSE(has(one.title, "or what"));
}

TEST(CudaAsyncError, OfManyTellsHowManyAndHowToPinOne) {
    std::vector<CudaLaunch> launches;
    for (std::uint64_t i = 0; i < 40; ++i) {
        launches.push_back(launched(i % 4 == 0 ? kOob : "_Z4goodv", 1000 - i));
    }
    const Finding finding = found_of(with(launches));
    EXPECT_TRUE(has(finding.title, "in one of 40 launches that were not known to be finished"))
        << finding.title;
    EXPECT_EQ(finding.evidence["pending"], 40);
    EXPECT_EQ(finding.evidence["suspects"].size(), 16U) << "no more are told";
    EXPECT_EQ(finding.evidence["suspects"][0]["us_before"], 1000) << "the oldest first";
    EXPECT_EQ(finding.evidence["kernels"][0], "writes_out_of_bounds (10x)");
    EXPECT_EQ(finding.evidence["kernels"][1], "good (30x)");
    ASSERT_FALSE(finding.fixes.empty());
    EXPECT_EQ(finding.fixes[0].command, "export CUDIAG_TRACK=1");
    EXPECT_TRUE(has(finding.limits, "memory that one kernel spoils may fault in another"));
}

TEST(CudaAsyncError, SaysWhyMarksWereOff) {
    Process process = with({launched(kOob, 900), launched("_Z4goodv", 800)});
    process.tracking = "the driver has no cuStreamWriteValue32";
    const Finding finding = found_of(process);
    EXPECT_EQ(finding.evidence["tracking"],
              "off, though asked for: the driver has no cuStreamWriteValue32");
    EXPECT_FALSE(advises(finding, "CUDIAG_TRACK")) << "it was asked for in vain";
}

TEST(CudaAsyncError, SaysWhereRecordsWereOverwritten) {
    Process process = with({launched(kOob, 900)});
    process.launches_lost = 7;
    const Finding finding = found_of(process);
    EXPECT_TRUE(has(finding.limits, "CUDIAG_RING_MB")) << finding.limits;
    EXPECT_TRUE(has(finding.evidence["pinned_by"], "not pinned"));
}

TEST(CudaAsyncError, WithoutLaunchesSaysSo) {
    const Finding finding = found_of(with({}));
    EXPECT_TRUE(has(finding.title, "which kernel it was is not known")) << finding.title;
    EXPECT_TRUE(finding.evidence["suspects"].empty());
    EXPECT_TRUE(advises(finding, "CUDIAG_TRACK"));

    Process process = trainer();
    process.exceptions = {raised("CUDA error: an illegal memory access was encountered")};
    EXPECT_FALSE(advises(found_of(process), "CUDIAG_TRACK"))
        << "where the call was not seen, launches would not be either";
}

TEST(CudaAsyncError, CallsAGraphAGraph) {
    CudaLaunch graph = launched("", 500);
    graph.graph = true;
    graph.kernels = 24;
    const Finding finding = found_of(with({graph}));
    EXPECT_TRUE(has(finding.title, ": a CUDA graph of 24 kernels")) << finding.title;
    EXPECT_FALSE(finding.evidence["suspects"][0].contains("grid"));

    graph.kernels = 0;
    EXPECT_TRUE(found_of(with({graph})).title.ends_with(": a CUDA graph"));
}

TEST(CudaAsyncError, KnowsTorchsOwnChecksByTheKernel) {
    const Finding pinned = found_of(with({launched(kIndex, 500)}, 710));
    EXPECT_TRUE(advises(pinned, "an index is outside of the tensor"));
    EXPECT_TRUE(advises(pinned, "stands on stderr"));

    const Finding other = found_of(with({launched(kIndex, 500)}, 700));
    EXPECT_FALSE(advises(other, "an index is outside")) << "no assertion";

    const Finding many = found_of(with({launched(kIndex, 500), launched(kOob, 400)}, 710));
    EXPECT_FALSE(advises(many, "an index is outside")) << "it may be the other";
}

TEST(CudaAsyncError, OfTheSameHintTellsItOnce) {
    CudaLaunch first = launched(kIndex, 500, 0x100);
    CudaLaunch second = launched(kIndex, 400, 0x200);
    first.mark = second.mark = 1;
    Process process = with({first, second}, 710);
    process.tracked = true;
    const Finding finding = found_of(process);
    EXPECT_EQ(std::count_if(finding.fixes.begin(), finding.fixes.end(),
                            [](const Fix& fix) { return has(fix.text, "outside of the tensor"); }),
              1);
}

TEST(CudaAsyncError, OfACodeWithoutARemedyStillNamesIt) {
    const Finding finding = found_of(with({launched(kOob, 500)}, 226));
    EXPECT_EQ(finding.evidence["code"], 226);
    EXPECT_TRUE(finding.fixes.empty());
    EXPECT_FALSE(finding.title.empty());
}

TEST(CudaAsyncError, BelievesTheCoreDumpBeforeAllElse) {
    Process process = with({launched("_Z4goodv", 900), launched(kOob, 800), launched(kOob, 700),
                            launched("_Z4goodv", 600)});
    process.launches[1].shape.grid = {9, 1, 1};
    process.launches[2].python = {{"step.py", 5, "step"}};
    process.gpu_core = core_with(14, kOob);
    const Finding finding = found_of(process);
    EXPECT_EQ(finding.title,
              "a kernel read or wrote an address that is not mapped on the GPU (illegal memory "
              "access): writes_out_of_bounds, block (2, 0, 0), thread (3, 0, 0), fault.cu:26");
    EXPECT_EQ(finding.confidence, Confidence::certain);
    const auto& evidence = finding.evidence;
    EXPECT_TRUE(has(evidence["pinned_by"], "core dump of the GPU"));
    EXPECT_EQ(evidence["core_dump"], "/tmp/a b.core");
    EXPECT_EQ(evidence["core_dump_by"], "driver 580.159, CUDA 13.0");
    EXPECT_EQ(evidence["gpu"], "NVIDIA H200");
    ASSERT_EQ(evidence["exceptions"].size(), 1U);
    const auto& thread = evidence["exceptions"][0];
    EXPECT_EQ(thread["exception"], "CUDBG_EXCEPTION_WARP_ILLEGAL_ADDRESS");
    EXPECT_EQ(thread["kernel"], "writes_out_of_bounds");
    EXPECT_EQ(thread["signature"], "writes_out_of_bounds(float*, unsigned long)");
    EXPECT_EQ(thread["place"], "writes_out_of_bounds+0xb0");
    EXPECT_EQ(thread["source"], "/src/fault.cu:26");
    EXPECT_EQ(thread["block_index"], "(2, 0, 0)");
    EXPECT_EQ(thread["grid"], "(4, 1, 1)");
    ASSERT_EQ(evidence["suspects"].size(), 1U) << "of that kernel, and of that shape";
    EXPECT_EQ(finding.python.at(0).file, "step.py");
    EXPECT_TRUE(advises(finding, "cuda-gdb -ex 'target cudacore /tmp/a b.core'"));
    EXPECT_FALSE(advises(finding, "CUDIAG_TRACK"));
    EXPECT_TRUE(has(finding.limits, "may come from a kernel before it")) << finding.limits;
}

TEST(CudaAsyncError, OfACoreDumpAloneTellsWhatTheDriverAborted) {
    Process process = with({launched(kOob, 800)});
    process.cuda_failures.clear();
    process.end = EndHow::abort;
    process.end_status = 6;
    process.gpu_core = core_with(6, kOob);
    const Finding finding = found_of(process);
    EXPECT_TRUE(has(finding.title, "writes_out_of_bounds, block (2, 0, 0)")) << finding.title;
    EXPECT_EQ(finding.evidence["code"], 716);
    EXPECT_EQ(finding.evidence["call"], "not seen");
    EXPECT_EQ(finding.confidence, Confidence::certain);

    Facts facts;
    facts.processes = {process};
    const std::vector<Finding> findings = judge(facts, Machine{});
    ASSERT_EQ(findings.size(), 2U);
    EXPECT_EQ(findings[0].slug, "cuda-async-error");
    EXPECT_EQ(findings[1].slug, "process-killed");
    EXPECT_EQ(findings[0].cause_of, std::vector<std::string>{findings[1].id});
}

TEST(CudaAsyncError, OfTheGeneralErrorTellsWhichExceptionItWas) {
    Process process = with({}, 719);
    process.gpu_core = core_with(12, kIndex);
    const Finding finding = found_of(process);
    EXPECT_EQ(finding.evidence["code"], 719) << "what the driver gave";
    EXPECT_TRUE(has(finding.title, "assert")) << finding.title;
    EXPECT_TRUE(advises(finding, "an index is outside of the tensor"));

    process = with({}, 700);
    process.gpu_core = core_with(17, kOob);  // of a cluster: 719 by the table
    EXPECT_TRUE(has(found_of(process).title, "illegal memory access")) << "the driver knows better";
    process.gpu_core = core_with(4000, kOob);
    EXPECT_EQ(found_of(process).evidence["exceptions"][0]["exception"], "exception 4000");
}

TEST(CudaAsyncError, CountsThreadsOfACoreDumpByThePlace) {
    Process process = with({});
    GpuCore core = core_with(14, kOob);
    core.exceptions.resize(31, core.exceptions.front());
    core.exceptions.push_back(core.exceptions.front());
    core.exceptions.back().pc += 16;
    core.exceptions.push_back({.code = 14, .kernel = "_Z4goodv", .pc = 1});
    process.gpu_core = core;
    const auto exceptions = found_of(process).evidence["exceptions"];
    ASSERT_EQ(exceptions.size(), 3U);
    EXPECT_EQ(exceptions[0]["threads"], 31);
    EXPECT_EQ(exceptions[1]["threads"], 1);
    EXPECT_EQ(exceptions[2]["threads"], 0) << "they were gone";
    EXPECT_FALSE(has(found_of(process).limits, "counted by place"));
    process.gpu_core->threads = 5000;
    EXPECT_TRUE(has(found_of(process).limits, "of 5000 threads with an exception the first 33"));
}

TEST(CudaAsyncError, OfACoreDumpThatTellsNothingSaysWhy) {
    Process process = with({launched(kOob, 900), launched("_Z4goodv", 800)});
    process.gpu_core = GpuCore{};
    process.gpu_core->path = "/tmp/x.core";
    process.gpu_core->problem = "No such file or directory";
    const Finding finding = found_of(process);
    EXPECT_EQ(finding.evidence["core_dump"], "/tmp/x.core: No such file or directory");
    EXPECT_TRUE(has(finding.title, "one of 2 launches")) << finding.title;

    process.gpu_core = core_with(14, "");
    EXPECT_TRUE(has(found_of(process).title, "one of 2 launches")) << "it knows no kernel";
}

TEST(CudaAsyncError, IsSilentOfACoreDumpWithoutAnException) {
    Process process = trainer();
    process.end_status = 0;
    process.gpu_core = GpuCore{};
    EXPECT_FALSE(cuda_gave_an_error(process)) << "it was only to be written";
}

TEST(CudaAsyncError, IsToldOfAProcessThatEndedWell) {
    Process process = with({launched(kOob, 500)});
    process.end_status = 0;
    const auto finding = cuda_gave_an_error(process);
    ASSERT_TRUE(finding);
    EXPECT_EQ(finding->slug, "cuda-async-error");
}

TEST(CudaAsyncError, IsSilentOfAHealthyProcess) {
    Process process = trainer();
    process.end_status = 0;
    process.launches = {launched("_Z4goodv", 500)};
    EXPECT_FALSE(cuda_gave_an_error(process));
    process.cuda_failures = {failed_call("cuMemAlloc_v2", 2)};
    EXPECT_FALSE(cuda_gave_an_error(process));
}

TEST(CudaAsyncError, IsSilentOfErrorsThatDoNotStick) {
    Process process = trainer();
    process.cuda_failures = {failed_call("cuMemAlloc_v2", 2)};
    process.exceptions = {raised("CUDA out of memory. Tried to allocate 2.00 GiB.")};
    process.launches = {launched("_Z4goodv", 500)};
    ASSERT_TRUE(running_case_of(process));
    EXPECT_FALSE(said_by(cuda_async_error, process));
    const auto finding = cuda_gave_an_error(process);
    ASSERT_TRUE(finding);
    EXPECT_EQ(finding->slug, "cuda-out-of-memory");
}

}  // namespace cudiag
