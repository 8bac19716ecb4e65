#include <cerrno>

#include "tests/unit/diagnose/cuda/facts.h"

namespace cudiag {
namespace {

using testing::advises;
using testing::python_with_driver;
using testing::raised;
using testing::with_nodes;

Process with_unknown_error() {
    Process process = python_with_driver("/drv/libcuda.so.580.65.06", 13000);
    process.exceptions = {raised("Failed to initialize NVML: Unknown Error")};
    return process;
}

TEST(ContainerDeviceRevoked, NamesTheNodeThatTheCgroupRefuses) {
    Machine machine = with_nodes({"/dev/nvidia0", "/dev/nvidiactl"});
    machine.refused_nodes = {{"/dev/nvidia0", EPERM}, {"/dev/nvidiactl", EPERM}};
    machine.device_cgroup = "/docker/abc";
    const auto finding = cuda_cannot_start(with_unknown_error(), machine);
    ASSERT_TRUE(finding);
    EXPECT_EQ(finding->slug, "container-device-revoked");
    EXPECT_EQ(finding->title,
              "/dev/nvidiactl is there, and the device cgroup lets nobody, not even root, open it");
    EXPECT_EQ(finding->evidence["node"], "/dev/nvidiactl");
    EXPECT_EQ(finding->evidence["errno"], EPERM);
    EXPECT_EQ(finding->evidence["cgroup"], "/docker/abc");
    EXPECT_TRUE(advises(*finding, "restart the container"));
    EXPECT_FALSE(advises(*finding, "nvidia-driver"));
}

TEST(ContainerDeviceRevoked, IsSilentOfASchedulerThatKeepsAJobToItsGpus) {
    Machine machine = with_nodes({"/dev/nvidia0", "/dev/nvidia1", "/dev/nvidiactl"});
    machine.refused_nodes = {{"/dev/nvidia1", EPERM}};
    EXPECT_FALSE(cuda_cannot_start(with_unknown_error(), machine));
}

TEST(ContainerDeviceRevoked, IsSilentOfPermissionBits) {
    Machine machine = with_nodes({"/dev/nvidiactl"});
    machine.refused_nodes = {{"/dev/nvidiactl", EACCES}};
    EXPECT_FALSE(cuda_cannot_start(with_unknown_error(), machine));
}

}  // namespace
}  // namespace cudiag
