#include <fcntl.h>
#include <unistd.h>

#include "tests/unit/diagnose/build/facts.h"

namespace cudiag {
namespace {

using testing::commands_of;
using testing::holds;

// This process waits for build/lock.
Facts waiting(const ElfWorld& world, std::int32_t pid = getpid()) {
    Facts facts;
    FileNote note;
    note.pid = pid;
    note.path = world.path("build/lock");
    note.python = {{"file_baton.py", 49, "wait"}};
    facts.build.locks = {note};
    return facts;
}

TEST(BuildStaleLock, IsALockThatNoProcessHasOpen) {
    const ElfWorld world;
    world.text("build/build.ninja", "");
    const std::string lock = world.text("build/lock", "");
    const auto findings = build_stale_locks(waiting(world));
    ASSERT_EQ(findings.size(), 1U);
    EXPECT_EQ(findings[0].slug, "build-stale-lock");
    EXPECT_TRUE(holds(findings[0].title, "waiting for " + lock + ", made at "));
    EXPECT_TRUE(holds(findings[0].title, "by a build that is gone: no process has it open"));
    EXPECT_EQ(findings[0].evidence["lock"], lock);
    EXPECT_EQ(findings[0].evidence["build_directory"], world.path("build"));
    EXPECT_TRUE(findings[0].evidence["holders"].empty());
    EXPECT_GE(findings[0].evidence["age_s"].get<long>(), 0);
    EXPECT_EQ(findings[0].pid, getpid());
    ASSERT_EQ(findings[0].python.size(), 1U);
    EXPECT_EQ(commands_of(findings[0]), std::vector<std::string>{"rm " + lock});
}

TEST(BuildStaleLock, IsToldOnceHoweverManyWaitForIt) {
    const ElfWorld world;
    world.text("build/build.ninja", "");
    world.text("build/lock", "");
    Facts facts = waiting(world);
    facts.build.locks.push_back(facts.build.locks[0]);
    facts.build.locks[1].pid = 1;
    EXPECT_EQ(build_stale_locks(facts).size(), 1U);
}

TEST(BuildStaleLock, IsNoneWhereItsMakerStillHasItOpen) {
    const ElfWorld world;
    world.text("build/build.ninja", "");
    const std::string lock = world.text("build/lock", "");
    const int held = open(lock.c_str(), O_RDONLY | O_CLOEXEC);
    ASSERT_GE(held, 0);
    constexpr std::int32_t kOther = 1;  // whoever waits, it is not this process
    EXPECT_TRUE(build_stale_locks(waiting(world, kOther)).empty());
    (void)close(held);
    EXPECT_EQ(build_stale_locks(waiting(world, kOther)).size(), 1U);
}

TEST(BuildStaleLock, IsNotMadeOfTheWaitingProcessesOwnDescriptors) {
    const ElfWorld world;
    world.text("build/build.ninja", "");
    const std::string lock = world.text("build/lock", "");
    const int own = open(lock.c_str(), O_RDONLY | O_CLOEXEC);
    ASSERT_GE(own, 0);
    EXPECT_EQ(build_stale_locks(waiting(world)).size(), 1U);
    (void)close(own);
}

TEST(BuildStaleLock, IsNoneWhereTheLockWasTakenAway) {
    const ElfWorld world;
    world.text("build/build.ninja", "");
    EXPECT_TRUE(build_stale_locks(waiting(world)).empty());
}

TEST(BuildStaleLock, IsNoneInADirectoryThatIsNoBuilds) {
    const ElfWorld world;
    world.text("build/lock", "");
    EXPECT_TRUE(build_stale_locks(waiting(world)).empty());
}

}  // namespace
}  // namespace cudiag
