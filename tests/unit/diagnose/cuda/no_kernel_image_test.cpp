// Code that has nothing for the GPU.
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

constexpr const char* kWords =
    "CUDA error: no kernel image is available for execution on the device";

Finding found_of(const FailedCudaCall& call) {
    Process process = trainer();
    process.exceptions = {raised(kWords, "torch.AcceleratorError")};
    process.cuda_failures = {call};
    const auto finding = said_by(cuda_no_kernel_image, process);
    EXPECT_TRUE(finding);
    return finding.value_or(Finding{});
}

// A library with one fatbin, made without nvcc; needs torch if it is told so.
std::string extension(const ElfWorld& world, const std::string& images, bool torch) {
    std::string bytes;
    for (const char c : fatbin(images)) {
        bytes += std::to_string(static_cast<unsigned char>(c)) + ",";
    }
    LibraryRecipe recipe;
    recipe.soname = "-";
    recipe.source =
        "__attribute__((section(\".nv_fatbin\"), aligned(8), used)) static const "
        "unsigned char f[] = {" +
        bytes + "};\n";
    if (torch) {
        world.library("libc10.so");
        recipe.needs = {"libc10.so"};
        recipe.flags = "-Wl,--no-as-needed";
    }
    return world.library("mine.so", recipe);
}

}  // namespace

TEST(CudaNoKernelImage, NamesWhatTheFileHasAndTheGpu) {
    const ElfWorld world;
    FailedCudaCall call = loading(209, world.text("a.cubin", fatbin(sass(80) + sass(86))));
    call.log = {"No device code available for GPU ISA 90"};
    const Finding finding = found_of(call);
    EXPECT_EQ(finding.title,
              "a.cubin has sm_80 sm_86 (SASS), and nothing that runs on NVIDIA H200 (compute "
              "capability 9.0)");
    EXPECT_EQ(finding.confidence, Confidence::certain);
    EXPECT_TRUE(advises(finding, "-gencode arch=compute_90,code=sm_90"));
    EXPECT_FALSE(advises(finding, "TORCH_CUDA_ARCH_LIST")) << "it has nothing to do with torch";
    EXPECT_EQ(finding.fixes.size(), 1U);
    const auto& evidence = finding.evidence;
    EXPECT_EQ(evidence["gpu"], "NVIDIA H200");
    EXPECT_EQ(evidence["compute_capability"], "9.0");
    EXPECT_EQ(evidence["of"], "the image that was refused");
    EXPECT_EQ(evidence["architectures"], "sm_80 sm_86 (SASS)");
    EXPECT_TRUE(evidence["runs_here"].empty());
    EXPECT_EQ(evidence["driver_log"][0], "No device code available for GPU ISA 90");
}

TEST(CudaNoKernelImage, FindsAFileByTheDirectoryOfTheProcess) {
    const ElfWorld world;
    world.text("a.cubin", fatbin(sass(80)));
    Process process = trainer();
    process.cwd = world.path();
    process.exceptions = {raised(kWords)};
    process.cuda_failures = {loading(209, "a.cubin")};
    const auto finding = said_by(cuda_no_kernel_image, process);
    ASSERT_TRUE(finding);
    EXPECT_EQ(finding->evidence["file"], world.path("a.cubin"));
    EXPECT_FALSE(finding->evidence.contains("kernel")) << "what was asked for is a file";
}

TEST(CudaNoKernelImage, OfAnExtensionOfTorchSetsTorchsVariable) {
    const ElfWorld world;
    const Finding finding = found_of(looking_up(209, extension(world, sass(80), true)));
    EXPECT_TRUE(
        has(finding.title, "mine.so has sm_80 (SASS), and nothing that runs on NVIDIA H200"))
        << finding.title;
    EXPECT_TRUE(has(finding.title, "for axpy")) << finding.title;
    ASSERT_EQ(finding.fixes.size(), 1U);
    EXPECT_EQ(finding.fixes[0].command, "export TORCH_CUDA_ARCH_LIST=9.0");
    EXPECT_FALSE(advises(finding, "-gencode"));
}

TEST(CudaNoKernelImage, OfPtxForALaterGpuSaysThatItRunsOnNone) {
    const ElfWorld world;
    const Finding finding =
        found_of(loading(209, world.text("a.fatbin", fatbin(sass(80) + ptx(100, 8, 7)))));
    EXPECT_TRUE(has(finding.title, "sm_80 (SASS), compute_100 (PTX), and nothing"))
        << finding.title;
}

TEST(CudaNoKernelImage, DoesNotBuildForAnotherGpuWhatIsForOneOnPurpose) {
    const ElfWorld world;
    const Finding finding = found_of(loading(209, world.text("a.fatbin", fatbin(sass(100, true)))));
    EXPECT_TRUE(has(finding.title, "sm_100a (SASS)")) << finding.title;
    EXPECT_TRUE(finding.fixes.empty());
    EXPECT_TRUE(has(finding.limits, "for one architecture on purpose"));
}

TEST(CudaNoKernelImage, OfAFileThatHasCodeForTheGpuElsewhereProposesNothing) {
    const ElfWorld world;
    const Finding finding = found_of(looking_up(209, extension(world, sass(80) + sass(90), false)));
    EXPECT_TRUE(has(finding.title, "has no code for axpy that runs on")) << finding.title;
    EXPECT_EQ(finding.evidence["of"], "the whole file");
    EXPECT_EQ(finding.evidence["runs_here"][0], "sm_90");
    EXPECT_EQ(finding.confidence, Confidence::likely);
    EXPECT_TRUE(finding.fixes.empty());
}

TEST(CudaNoKernelImage, OfAnImageThatShouldRunProposesNothing) {
    const ElfWorld world;
    const Finding finding =
        found_of(loading(209, world.text("a.fatbin", fatbin(sass(75) + ptx(80, 8, 4)))));
    EXPECT_TRUE(has(finding.title, "the driver took no code for NVIDIA H200")) << finding.title;
    EXPECT_EQ(finding.evidence["runs_here"][0], "compute_80 (after the driver compiled it)");
    EXPECT_EQ(finding.confidence, Confidence::likely);
    EXPECT_TRUE(finding.fixes.empty());
    EXPECT_TRUE(has(finding.limits, "why the driver took none of it is not seen"));
}

TEST(CudaNoKernelImage, OfTorchItselfProposesAnotherTorchAndNoBuild) {
    const ElfWorld world;
    const std::string made = extension(world, sass(80), false);
    const std::string torch = world.path("libtorch_cuda.so");
    std::filesystem::rename(made, torch);
    const Finding finding = found_of(looking_up(209, torch));
    ASSERT_EQ(finding.fixes.size(), 1U);
    EXPECT_TRUE(has(finding.fixes[0].text, "a torch that was built for sm_90"));
    EXPECT_TRUE(has(finding.fixes[0].command, "get_arch_list"));
    EXPECT_FALSE(advises(finding, "TORCH_CUDA_ARCH_LIST"));
}

TEST(CudaNoKernelImage, OfAPackageNamesIt) {
    const ElfWorld world;
    extension(world, sass(80), true);
    std::filesystem::create_directories(world.path("site-packages/fast"));
    std::filesystem::rename(world.path("mine.so"), world.path("site-packages/fast/mine.so"));
    world.text("site-packages/fast_attn-2.5.dist-info/METADATA",
               "Metadata-Version: 2.1\nName: fast-attn\nVersion: 2.5\n");
    world.text("site-packages/fast_attn-2.5.dist-info/RECORD", "fast/mine.so,,\n");
    const Finding finding = found_of(looking_up(209, world.path("site-packages/fast/mine.so")));
    EXPECT_EQ(finding.evidence["package"], "fast-attn 2.5");
    ASSERT_EQ(finding.fixes.size(), 1U);
    EXPECT_TRUE(
        has(finding.fixes[0].text, "install a release of fast-attn that has code for sm_90"));
    EXPECT_TRUE(has(finding.fixes[0].text, "TORCH_CUDA_ARCH_LIST=9.0"));
    EXPECT_TRUE(finding.fixes[0].command.empty()) << "the variable alone changes no wheel";
}

TEST(CudaNoKernelImage, WithoutTheGpuProposesNothing) {
    const ElfWorld world;
    FailedCudaCall call = loading(209, world.text("a.cubin", fatbin(sass(80))));
    call.device.reset();
    const Finding finding = found_of(call);
    EXPECT_TRUE(has(finding.title, "a.cubin has sm_80 (SASS)")) << finding.title;
    EXPECT_TRUE(has(finding.title, "what GPU it is was not seen")) << finding.title;
    EXPECT_TRUE(finding.fixes.empty());
}

TEST(CudaNoKernelImage, OfCodeInNoFileProposesNothing) {
    FailedCudaCall made = failed_call("cuModuleLoadData", 209);
    made.device = testing::h200();
    const Finding in_memory = found_of(made);
    EXPECT_TRUE(has(in_memory.title, "code that was made while the program ran"))
        << in_memory.title;
    EXPECT_TRUE(in_memory.fixes.empty());

    const Finding unseen = found_of(looking_up(209, ""));
    EXPECT_TRUE(has(unseen.title, "no device code for axpy that runs on NVIDIA H200"))
        << unseen.title;
    EXPECT_EQ(unseen.evidence["file"], "not seen");
    EXPECT_TRUE(unseen.fixes.empty());

    const Finding gone = found_of(looking_up(209, "/nonexistent/mine.so"));
    EXPECT_TRUE(has(gone.title, "for what it was built is not known")) << gone.title;
    EXPECT_TRUE(gone.fixes.empty());
}

TEST(CudaNoKernelImage, ToldByTheExceptionAloneSaysWhatIsNotKnown) {
    Process process = trainer();
    process.exceptions = {raised(kWords, "torch.AcceleratorError")};
    const auto finding = said_by(cuda_no_kernel_image, process);
    ASSERT_TRUE(finding);
    EXPECT_EQ(
        finding->title,
        "there is no device code for a kernel that runs on the GPU; which file was to have it "
        "was not seen");
    EXPECT_EQ(finding->evidence["gpu"], "not known");
    EXPECT_EQ(finding->evidence["architectures"], "not known");
    EXPECT_TRUE(finding->fixes.empty());
    EXPECT_TRUE(has(finding->limits, "neither the GPU nor the code is known"));
}

TEST(CudaNoKernelImage, IsSilentOfOtherErrorsAndOfWhatWasSurvived) {
    const ElfWorld world;
    const std::string file = world.text("a.cubin", fatbin(sass(80)));
    Process process = solver();
    process.cuda_failures = {loading(1, file)};
    ASSERT_TRUE(running_case_of(process));
    EXPECT_FALSE(said_by(cuda_no_kernel_image, process));

    process.cuda_failures = {loading(209, file)};
    EXPECT_TRUE(said_by(cuda_no_kernel_image, process));
    process.end_status = 0;
    EXPECT_FALSE(said_by(cuda_no_kernel_image, process)) << "a program that has another way";
}

TEST(CudaNoKernelImage, TellsTheImageOfAKernelFromTheRestOfItsFile) {
    if (!testing::has_nvcc()) {
        GTEST_SKIP() << "no " << testing::kNvcc;
    }
    const testing::TwoSources two{
        "-gencode arch=compute_80,code=sm_80",
        "-gencode arch=compute_80,code=sm_80 -gencode arch=compute_90,code=sm_90"};
    const Finding first = found_of(looking_up(209, two.library(), two.wrapper(0)));
    EXPECT_EQ(first.evidence["of"], "the image that was refused");
    EXPECT_EQ(first.evidence["architectures"], "sm_80 (SASS)");
    EXPECT_TRUE(advises(first, "sm_90"));

    const Finding second = found_of(looking_up(209, two.library(), two.wrapper(1)));
    EXPECT_EQ(second.evidence["architectures"], "sm_80 sm_90 (SASS)");
    EXPECT_TRUE(second.fixes.empty());
}

}  // namespace cudiag
