#include "diagnose/machine.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "tests/unit/diagnose/loader/elf_world.h"

namespace cudiag {
namespace {

TEST(Machine, IsReadFromItsFiles) {
    const ElfWorld world;
    world.text("dev/nvidiactl", "");
    world.text("dev/nvidia0", "");
    world.text("proc/driver/nvidia/version",
               "NVRM version: NVIDIA UNIX x86_64 Kernel Module  570.86.15  Fri\nGCC version:\n");
    world.text("proc/driver/nvidia/capabilities/gpu0/mig/gi2/access", "");
    world.text("proc/driver/nvidia/capabilities/mig/config", "");
    world.text("proc/sys/kernel/osrelease", "6.13.0\n");
    world.text("proc/17/comm", "nv-fabricmanage\n");
    world.text("proc/self/cgroup", "12:cpu,devices:/docker/abc\n3:memory:/other\n0::/unified\n");
    world.text("sys/module/nvidia_uvm/parameters/uvm_disable_hmm", "N\n");
    world.text("etc/os-release", "PRETTY_NAME=\"Ubuntu 24.04\"\nID=\"ubuntu\"\nVERSION_ID=24.04\n");
    const Machine machine = observe_machine(world.path());
    EXPECT_EQ(machine.distribution, "ubuntu");
    EXPECT_EQ(machine.device_nodes, (std::vector<std::string>{"/dev/nvidia0", "/dev/nvidiactl"}));
    EXPECT_TRUE(machine.refused_nodes.empty()) << "these are no devices";
    EXPECT_EQ(machine.mig_instances, (std::vector<std::string>{"gpu0/gi2"}));
    EXPECT_EQ(machine.kernel, "6.13.0");
    EXPECT_TRUE(machine.fabric_manager);
    EXPECT_EQ(machine.device_cgroup, "/docker/abc");
    EXPECT_EQ(machine.uvm_hmm_disabled, "N");
    EXPECT_NE(machine.driver_module.find("570.86.15"), std::string::npos);
}

TEST(Machine, OfCgroupVersion2HasTheOnlyHierarchy) {
    const ElfWorld world;
    world.text("proc/self/cgroup", "0::/kubepods/pod1\n");
    const Machine machine = observe_machine(world.path());
    EXPECT_EQ(machine.device_cgroup, "/kubepods/pod1");
    EXPECT_FALSE(machine.fabric_manager);
    EXPECT_TRUE(machine.mig_instances.empty());
}

TEST(Machine, KnowsWhichOfNcclsSegmentsAProcessHasMapped) {
    const ElfWorld world;
    world.text("dev/shm/nccl-lives1", "12345");
    world.text("dev/shm/nccl-killed", "1234567");
    world.text("dev/shm/other", "1");
    world.text("proc/17/maps",
               "7f00-7f01 rw-s 00000000 00:1b 5     /dev/shm/nccl-lives1 (deleted)\n"
               "7f02-7f03 r-xp 00000000 00:1b 6     /usr/lib/libc.so.6\n");
    const SharedMemory memory = observe_machine(world.path()).shared_memory;
    EXPECT_TRUE(memory.known);
    EXPECT_GE(memory.size, memory.free);
    ASSERT_EQ(memory.nccl.size(), 2U);
    EXPECT_EQ(memory.nccl[0].name, "nccl-killed");
    EXPECT_EQ(memory.nccl[0].bytes, 7U);
    EXPECT_FALSE(memory.nccl[0].mapped);
    EXPECT_TRUE(memory.nccl[1].mapped);
    EXPECT_FALSE(observe_machine(world.path("nowhere")).shared_memory.known);
}

TEST(Machine, HasALoopbackInterface) {
    const Machine machine = observe_machine();
    EXPECT_TRUE(machine.interfaces.empty() ||
                std::any_of(machine.interfaces.begin(), machine.interfaces.end(),
                            [](const Interface& each) { return each.loopback; }));
}

}  // namespace
}  // namespace cudiag
