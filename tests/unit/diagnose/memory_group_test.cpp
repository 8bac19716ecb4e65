#include "diagnose/memory_group.h"

#include <gtest/gtest.h>

#include "tests/unit/diagnose/loader/elf_world.h"

namespace cudiag {
namespace {

TEST(MemoryGroup, IsReadFromVersion1) {
    const ElfWorld world;
    world.text("proc/self/cgroup", "5:pids:/job\n4:cpu,memory:/job/7\n0::/\n");
    world.text("sys/fs/cgroup/memory/job/7/memory.oom_control",
               "oom_kill_disable 0\nunder_oom 0\noom_kill 2\n");
    world.text("sys/fs/cgroup/memory/job/7/memory.stat",
               "cache 5\nhierarchical_memory_limit 314572800\n");
    const auto group = memory_group(world.path());
    ASSERT_TRUE(group);
    EXPECT_EQ(group->path, "/job/7");
    EXPECT_EQ(group->limit, 314'572'800U);
    EXPECT_EQ(group->oom_kills, 2U);
}

TEST(MemoryGroup, OfVersion2HasTheLowestLimitAboveIt) {
    const ElfWorld world;
    world.text("proc/self/cgroup", "0::/slice/job\n");
    world.text("sys/fs/cgroup/slice/job/memory.events",
               "low 0\nhigh 0\nmax 9\noom 1\noom_kill 1\n");
    world.text("sys/fs/cgroup/slice/job/memory.max", "max\n");
    world.text("sys/fs/cgroup/slice/memory.max", "1000000\n");
    const auto group = memory_group(world.path());
    ASSERT_TRUE(group);
    EXPECT_EQ(group->limit, 1'000'000U);
    EXPECT_EQ(group->oom_kills, 1U);
}

TEST(MemoryGroup, OfAContainerIsAtTheMountPoint) {
    const ElfWorld world;
    world.text("proc/self/cgroup", "4:memory:/docker/5f0c\n");
    world.text("sys/fs/cgroup/memory/memory.oom_control", "oom_kill 3\n");
    world.text("sys/fs/cgroup/memory/memory.stat",
               "hierarchical_memory_limit 9223372036854771712\n");
    const auto group = memory_group(world.path());
    ASSERT_TRUE(group);
    EXPECT_EQ(group->oom_kills, 3U);
    EXPECT_EQ(group->limit, 0U) << "no limit";
}

TEST(MemoryGroup, IsNoneWhereNobodyCounts) {
    const ElfWorld world;
    EXPECT_FALSE(memory_group(world.path()));
    world.text("proc/self/cgroup", "0::/\nnonsense\n");
    EXPECT_FALSE(memory_group(world.path()));
}

}  // namespace
}  // namespace cudiag
