// PTX that the compiler in the driver does not take.
#include "tests/unit/diagnose/cuda/code_facts.h"

namespace cudiag {
namespace {

using testing::advises;
using testing::failed_call;
using testing::fatbin;
using testing::has;
using testing::loading;
using testing::looking_up;
using testing::ptx;
using testing::raised;
using testing::said_by;
using testing::sass;
using testing::solver;
using testing::trainer;

// As an H200 with driver 580.159.04 gave it.
constexpr const char* kLog =
    "ptxas application ptx input, line 1; fatal   : Unsupported .version 9.9; current version is "
    "'9.0'";

Process failed_with(const FailedCudaCall& call, std::uint64_t driver = 13000) {
    Process process = solver();
    process.cuda_driver->version = driver;
    process.cuda_failures = {call};
    return process;
}

Finding found_of(const Process& process) {
    const auto finding = said_by(cuda_ptx_rejected, process);
    EXPECT_TRUE(finding);
    return finding.value_or(Finding{});
}

FailedCudaCall from_memory(std::uint64_t error, const std::string& log = "") {
    FailedCudaCall call = failed_call("cuModuleLoadData", error);
    call.device = testing::h200();
    call.jit_log = log;
    return call;
}

}  // namespace

TEST(CudaPtxRejected, NamesTheVersionsAndTheCudaOfBoth) {
    const ElfWorld world;
    // As of nvcc 13.3 on driver 580 (vllm#47397).
    const std::string file = world.text("a.fatbin", fatbin(sass(80) + ptx(80, 9, 3)));
    Process process = failed_with(loading(222, file));
    process.exceptions = {
        raised("CUDA error: the provided PTX was compiled with an unsupported toolchain.",
               "torch.AcceleratorError")};
    const Finding finding = found_of(process);
    EXPECT_EQ(finding.title,
              "the PTX of a.fatbin is of version 9.3 (CUDA 13.3), and the driver (CUDA 13.0) "
              "compiles none after 9.0");
    EXPECT_EQ(finding.confidence, Confidence::certain);
    ASSERT_EQ(finding.fixes.size(), 3U);
    EXPECT_TRUE(has(finding.fixes[0].text, "code=sm_90"));
    EXPECT_TRUE(has(finding.fixes[1].text, "or build a.fatbin with an nvcc of CUDA 13.0 or older"));
    EXPECT_TRUE(has(finding.fixes[2].text, "one of CUDA 13.3 or newer"));
    const auto& evidence = finding.evidence;
    EXPECT_EQ(evidence["ptx_version"], "9.3");
    EXPECT_EQ(evidence["driver_cuda"], "13.0");
    EXPECT_EQ(evidence["newest_ptx_of_driver"], "9.0");
    EXPECT_EQ(evidence["needs_cuda"], "13.3");
    EXPECT_EQ(evidence["architectures"], "sm_80 (SASS), compute_80 (PTX)");
    EXPECT_FALSE(evidence.contains("jit_log"));
}

TEST(CudaPtxRejected, NamesTheBranchOfTheDriverThatWouldDo) {
    const ElfWorld world;
    const std::string file = world.text("a.fatbin", fatbin(ptx(80, 8, 4)));
    const Finding finding = found_of(failed_with(loading(222, file), 12020));
    EXPECT_TRUE(has(finding.title, "of version 8.4 (CUDA 12.4), and the driver (CUDA 12.2)"))
        << finding.title;
    EXPECT_TRUE(advises(finding, "CUDA 12.4 or newer (branch 550)"));
}

TEST(CudaPtxRejected, ReadsTheVersionsInTheLogOfTheCompiler) {
    for (const std::uint64_t code : {200U, 218U, 222U}) {
        SCOPED_TRACE(code);
        const Finding finding = found_of(failed_with(from_memory(code, kLog)));
        EXPECT_EQ(finding.title,
                  "the PTX of code that was made while the program ran is of version 9.9, and the "
                  "driver (CUDA 13.0) compiles none after 9.0");
        EXPECT_EQ(finding.evidence["jit_log"], kLog);
        ASSERT_EQ(finding.fixes.size(), 2U);
        EXPECT_TRUE(has(finding.fixes[0].text, "be of CUDA 13.0 or older"));
        EXPECT_TRUE(has(finding.fixes[1].text, "of the CUDA that made the code"))
            << "which has PTX 9.9 is not known";
    }
}

TEST(CudaPtxRejected, OfWrongPtxGivesTheLineAndNoFix) {
    const std::string log =
        "ptxas info    : compiling\n"
        "ptxas application ptx input, line 9; error   : Unknown symbol 'r7'\n"
        "ptxas fatal   : Ptx assembly aborted due to errors";
    const Finding finding = found_of(failed_with(from_memory(218, log)));
    EXPECT_TRUE(has(finding.title,
                    "rejected the PTX of code that was made while the program ran: "
                    "ptxas application ptx input, line 9; error"))
        << finding.title;
    EXPECT_TRUE(finding.fixes.empty());

    const Finding silent = found_of(failed_with(from_memory(218)));
    EXPECT_TRUE(has(silent.title, "why was not kept")) << silent.title;
    EXPECT_TRUE(silent.fixes.empty());

    const Finding odd = found_of(failed_with(from_memory(218, "something went wrong\nelsewhere")));
    EXPECT_TRUE(has(odd.title, ": something went wrong")) << odd.title;
}

TEST(CudaPtxRejected, WithoutTheVersionsBelievesTheCode) {
    const Finding finding = found_of(failed_with(from_memory(222)));
    EXPECT_EQ(finding.title,
              "the PTX of code that was made while the program ran is newer than the 9.0 that the "
              "driver (CUDA 13.0) compiles");
    EXPECT_EQ(finding.fixes.size(), 2U);

    Process process = failed_with(from_memory(222));
    process.cuda_driver.reset();
    const Finding unknown = found_of(process);
    EXPECT_TRUE(has(unknown.title, "is newer than the driver compiles")) << unknown.title;
    EXPECT_TRUE(advises(unknown, "the driver's CUDA or older"));
}

TEST(CudaPtxRejected, AVersionThatIsNotInTheTableIsTheNewest) {
    const ElfWorld world;
    const std::string file = world.text("a.fatbin", fatbin(ptx(80, 8, 4) + ptx(90, 14, 2)));
    const Finding finding = found_of(failed_with(loading(222, file)));
    EXPECT_EQ(finding.evidence["ptx_version"], "14.2");
    EXPECT_TRUE(has(finding.title, "is newer than the 9.0")) << finding.title;
}

TEST(CudaPtxRejected, ContradictsNoTable) {
    const ElfWorld world;
    const std::string file = world.text("a.fatbin", fatbin(ptx(80, 8, 4)));
    const Finding finding = found_of(failed_with(loading(222, file)));
    EXPECT_EQ(finding.title,
              "the driver (CUDA 13.0) refused PTX of a.fatbin as too new, though none in it is");
    EXPECT_TRUE(finding.fixes.empty());
    EXPECT_TRUE(has(finding.limits, "which PTX the driver means"));
}

TEST(CudaPtxRejected, DoesNotBuildForAnotherGpuWhatIsForOneOnPurpose) {
    const ElfWorld world;
    std::string image = ptx(100, 9, 3);
    image.replace(40, 8, testing::bytes_of(0x100011, 8));
    const Finding finding =
        found_of(failed_with(loading(222, world.text("a.fatbin", fatbin(image)))));
    EXPECT_EQ(finding.evidence["architectures"], "compute_100a (PTX)");
    EXPECT_FALSE(advises(finding, "code=sm_90"));
    EXPECT_TRUE(advises(finding, "build a.fatbin with an nvcc"));
}

TEST(CudaPtxRejected, OfAPackageProposesABuildOfIt) {
    const ElfWorld world;
    world.text("site-packages/fast/k.ptx", ".version 9.3\n.target sm_80\n");
    world.text("site-packages/fast_attn-2.5.dist-info/METADATA",
               "Metadata-Version: 2.1\nName: fast-attn\nVersion: 2.5\n");
    world.text("site-packages/fast_attn-2.5.dist-info/RECORD", "fast/k.ptx,,\n");
    const Finding finding =
        found_of(failed_with(loading(222, world.path("site-packages/fast/k.ptx"))));
    EXPECT_TRUE(advises(finding, "install a build of fast-attn that was made with CUDA 13.0"));
    EXPECT_FALSE(advises(finding, "nvcc"));
}

TEST(CudaPtxRejected, ToldByTheExceptionAloneSaysWhatIsNotKnown) {
    Process process = trainer();
    process.exceptions = {
        raised("CUDA error: the provided PTX was compiled with an unsupported toolchain.")};
    const Finding finding = found_of(process);
    EXPECT_TRUE(has(finding.title, "the PTX of code that was not seen is newer than the 9.0"))
        << finding.title;
    EXPECT_EQ(finding.evidence["call"], "not seen");
    EXPECT_TRUE(has(finding.limits, "the call that failed was not seen"));
}

TEST(CudaPtxRejected, IsSilentOfOtherImages) {
    const Process process = failed_with(from_memory(200));
    ASSERT_TRUE(running_case_of(process));
    EXPECT_FALSE(said_by(cuda_ptx_rejected, process)) << "no compiler was asked";

    EXPECT_FALSE(said_by(cuda_ptx_rejected, failed_with(from_memory(209, kLog))));
    Process survived = failed_with(from_memory(222, kLog));
    survived.end_status = 0;
    EXPECT_FALSE(said_by(cuda_ptx_rejected, survived)) << "a probe for what the driver knows";
}

TEST(CudaPtxRejected, ReadsTheVersionThatNvccWrote) {
    if (!testing::has_nvcc()) {
        GTEST_SKIP() << "no " << testing::kNvcc;
    }
    const testing::TwoSources two{"-gencode arch=compute_80,code=sm_80",
                                  "-gencode arch=compute_80,code=compute_80"};
    const Finding exact =
        found_of(failed_with(looking_up(222, two.library(), two.wrapper(1)), 12010));
    EXPECT_EQ(exact.evidence["of"], "the image that was refused");
    EXPECT_EQ(exact.evidence["architectures"], "compute_80 (PTX)");
    EXPECT_TRUE(has(exact.title, "and the driver (CUDA 12.1) compiles none after 8.1"))
        << exact.title;
    EXPECT_FALSE(has(exact.limits, "newest in the file"));

    const Finding whole = found_of(failed_with(looking_up(222, two.library()), 12010));
    EXPECT_EQ(whole.evidence["of"], "the whole file");
    EXPECT_TRUE(has(whole.limits, "newest in the file"));
}

}  // namespace cudiag
