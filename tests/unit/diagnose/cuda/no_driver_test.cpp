#include "tests/unit/diagnose/cuda/facts.h"

namespace cudiag {
namespace {

using testing::advises;
using testing::python_with_driver;
using testing::raised;

constexpr const char* kTorch =
    "Found no NVIDIA driver on your system. Please check that you have an NVIDIA GPU and installed "
    "a driver from http://www.nvidia.com/Download/index.aspx";

Process without_driver() {
    Process process = python_with_driver("", 0);
    process.cuda_driver.reset();
    process.exceptions = {raised(kTorch)};
    return process;
}

TEST(CudaNoDriver, NeverSaysTooOld) {
    const auto finding = cuda_cannot_start(without_driver(), Machine{});
    ASSERT_TRUE(finding);
    EXPECT_EQ(finding->slug, "cuda-no-driver");
    EXPECT_EQ(finding->title.find("too old"), std::string::npos) << finding->title;
    EXPECT_EQ(finding->evidence["code"], 35);
    EXPECT_EQ(finding->evidence["code_name"], "cudaErrorInsufficientDriver");
    EXPECT_EQ(finding->python.front().line, 3U);
    EXPECT_FALSE(advises(*finding, "pip install"));
    EXPECT_FALSE(advises(*finding, "pgrade"));
}

TEST(CudaNoDriver, AdvisesByWhatTheMachineShows) {
    const Process process = without_driver();
    Machine machine;
    machine.container = "kubernetes";
    const auto pod = cuda_cannot_start(process, machine);
    ASSERT_TRUE(pod);
    EXPECT_EQ(pod->evidence["container"], "kubernetes");
    if (pod->fixes.empty()) {
        GTEST_SKIP() << "this machine has a libcuda.so.1 of its own";
    }
    EXPECT_TRUE(advises(*pod, "nvidia.com/gpu"));
    machine.container = "";
    machine.wsl = true;
    EXPECT_TRUE(advises(*cuda_cannot_start(process, machine), "/usr/lib/wsl/lib"));
}

TEST(CudaNoDriver, IsWhatItMeansThatNoGpuWasCountedWithoutADriver) {
    const char* text = "ProcessGroupNCCL is only supported with GPUs, no GPUs found!";
    Process process = python_with_driver("/drv/libcuda.so.550.54.14", 12040);
    process.exceptions = {raised(text)};
    const auto with_driver = cuda_cannot_start(process, Machine{});
    ASSERT_TRUE(with_driver);
    EXPECT_EQ(with_driver->slug, "cuda-device-unavailable");
    process = without_driver();
    process.exceptions = {raised(text)};
    const auto finding = cuda_cannot_start(process, Machine{});
    ASSERT_TRUE(finding);
    if (finding->slug == "cuda-device-unavailable") {
        GTEST_SKIP() << "this machine has a libcuda.so.1 of its own";
    }
    EXPECT_EQ(finding->slug, "cuda-no-driver");
    EXPECT_EQ(finding->evidence["code"], 100);
    EXPECT_EQ(finding->limits.find("35"), std::string::npos) << finding->limits;
}

TEST(CudaNoDriver, IsSilentWhereADriverGaveItsVersion) {
    Process process = python_with_driver("/drv/libcuda.so.550.54.14", 12040);
    process.exceptions = {raised("CUDA driver version is insufficient for CUDA runtime version")};
    const auto finding = cuda_cannot_start(process, Machine{});
    ASSERT_TRUE(finding);
    EXPECT_EQ(finding->slug, "cuda-driver-too-old");
}

}  // namespace
}  // namespace cudiag
