#include "tests/unit/diagnose/cuda/facts.h"

namespace cudiag {
namespace {

using testing::advises;
using testing::map_library;
using testing::python_with_driver;
using testing::raised;

Process with_old_driver() {
    Process process = python_with_driver("/drv/libcuda.so.550.54.14", 12040);
    process.exceptions = {raised(
        "The NVIDIA driver on your system is too old (found version 12040). Please update your GPU "
        "driver")};
    map_library(process, "/opt/venv/lib/libcudart.so.13");
    return process;
}

TEST(CudaDriverTooOld, NamesBothSidesAndTheMinimum) {
    const auto finding = cuda_cannot_start(with_old_driver(), Machine{});
    ASSERT_TRUE(finding);
    EXPECT_EQ(finding->slug, "cuda-driver-too-old");
    EXPECT_EQ(finding->title,
              "the NVIDIA driver 550.54.14 (CUDA 12.4) is too old for the CUDA 13.x runtime: it "
              "needs driver 580.65.06 or newer");
    EXPECT_EQ(finding->evidence["driver_release"], "550.54.14");
    EXPECT_EQ(finding->evidence["driver_cuda"], "12.4");
    EXPECT_EQ(finding->evidence["minimum"], "580.65.06");
    EXPECT_EQ(finding->evidence["runtime"], "/opt/venv/lib/libcudart.so.13");
    EXPECT_EQ(finding->evidence["forward_compat"], "none seen");
    ASSERT_FALSE(finding->fixes.empty());
    EXPECT_NE(finding->fixes.front().text.find("branch 580 or newer"), std::string::npos);
    EXPECT_FALSE(advises(*finding, "pip install")) << "no torch is in the process";
    EXPECT_FALSE(advises(*finding, "toolkit"));
}

TEST(CudaDriverTooOld, SendsAContainersUserToTheHost) {
    Machine machine;
    machine.container = "docker";
    const auto finding = cuda_cannot_start(with_old_driver(), machine);
    ASSERT_TRUE(finding);
    EXPECT_TRUE(advises(*finding, "on the host"));
    EXPECT_FALSE(advises(*finding, "apt install"));
    machine = Machine{};
    machine.wsl = true;
    EXPECT_TRUE(advises(*cuda_cannot_start(with_old_driver(), machine), "Windows"));
}

TEST(CudaDriverTooOld, GivesACommandWhereItsPackagesAreKnown) {
    Machine machine;
    machine.distribution = "ubuntu";
    EXPECT_EQ(cuda_cannot_start(with_old_driver(), machine)->fixes.front().command,
              "sudo apt install nvidia-driver-580");
    machine.distribution = "debian";
    EXPECT_EQ(cuda_cannot_start(with_old_driver(), machine)->fixes.front().command, "");
}

TEST(CudaDriverTooOld, ClaimsNothingOfADriverThatIsNewEnough) {
    Process process = python_with_driver("/drv/libcuda.so.580.65.06", 13000);
    process.exceptions = {raised("CUDA driver version is insufficient for CUDA runtime version")};
    map_library(process, "/opt/venv/lib/libcudart.so.13");
    const auto finding = cuda_cannot_start(process, Machine{});
    ASSERT_TRUE(finding);
    EXPECT_EQ(finding->confidence, Confidence::likely);
    EXPECT_TRUE(finding->fixes.empty());
}

TEST(CudaDriverTooOld, OfAForwardCompatibilityLibraryTakesItAway) {
    Process process = python_with_driver("/usr/local/cuda-13.0/compat/libcuda.so.580.65.06", 13000);
    process.exceptions = {
        raised("Unexpected error from cudaGetDeviceCount(). Error 804: forward "
               "compatibility was attempted on non supported HW")};
    map_library(process, "/opt/venv/lib/libcudart.so.13");
    Machine machine;
    machine.driver_module =
        "NVRM version: NVIDIA UNIX x86_64 Kernel Module  580.95.05  Tue Sep 23 10:11:16 UTC 2025";
    auto finding = cuda_cannot_start(process, machine);
    ASSERT_TRUE(finding);
    EXPECT_EQ(finding->slug, "cuda-driver-too-old");
    EXPECT_TRUE(advises(*finding, "580.95.05, is new enough"));
    EXPECT_FALSE(advises(*finding, "branch 580"));

    machine.driver_module =
        "NVRM version: NVIDIA UNIX x86_64 Kernel Module  550.54.14  Thu Feb 22 01:44:30 UTC 2024";
    finding = cuda_cannot_start(process, machine);
    EXPECT_TRUE(advises(*finding, "branch 580 or newer"));
}

TEST(CudaDriverTooOld, OfAProgramWithoutWordsIsInferredFromTheTwoMajors) {
    Process process = python_with_driver("/drv/libcuda.so.550.54.14", 12040);
    process.exe = "/opt/solver";
    map_library(process, "/opt/lib/libcudart.so.13");
    const auto finding = cuda_cannot_start(process, Machine{});
    ASSERT_TRUE(finding);
    EXPECT_EQ(finding->slug, "cuda-driver-too-old");
    EXPECT_EQ(finding->confidence, Confidence::likely);

    process.snapshots.clear();
    map_library(process, "/opt/lib/libcudart.so.12");
    EXPECT_FALSE(cuda_cannot_start(process, Machine{}));
}

}  // namespace
}  // namespace cudiag
