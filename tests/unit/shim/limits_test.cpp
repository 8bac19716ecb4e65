#include "shim/limits.h"

#include <grp.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/resource.h>

#include <map>
#include <optional>

#include "tests/unit/shim/in_a_child.h"

namespace cudiag {
namespace {

using testing::kCannotRunHere;
using testing::status_of_child;

struct Seen {
    std::map<Field, std::uint64_t> numbers;
    std::string cgroup;

    std::optional<std::uint64_t> operator[](Field field) const {
        const auto found = numbers.find(field);
        return found == numbers.end() ? std::nullopt : std::optional{found->second};
    }
};

Seen look() {
    Seen seen;
    const Limits limits;
    FieldValue fields[kLimitFields];
    const std::size_t count = limits.fields(fields);
    for (std::size_t i = 0; i < count; ++i) {
        if (fields[i].field == Field::cgroup) {
            seen.cgroup.assign(static_cast<const char*>(fields[i].bytes), fields[i].size);
        } else {
            seen.numbers[fields[i].field] = fields[i].number;
        }
    }
    return seen;
}

using Files = std::map<std::string, std::string>;

// What a process sees that is in these groups: in a mount namespace of its own, of which nothing is
// left. False where there are none here.
bool enter_groups(const std::string& membership, const Files& files) {
    const int flags = geteuid() == 0 ? CLONE_NEWNS : CLONE_NEWUSER | CLONE_NEWNS;
    if (unshare(flags) != 0 || mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0 ||
        mount("tmpfs", "/sys/fs/cgroup", "tmpfs", 0, nullptr) != 0 ||
        mount("tmpfs", "/proc", "tmpfs", 0, nullptr) != 0) {
        return false;
    }
    std::filesystem::create_directories("/proc/self");
    std::ofstream{"/proc/self/cgroup"} << membership;
    for (const auto& [name, text] : files) {
        const std::filesystem::path path = "/sys/fs/cgroup/" + name;
        std::filesystem::create_directories(path.parent_path());
        std::ofstream{path} << text;
    }
    return true;
}

template <class Expect>
void in_groups(const std::string& membership, const Files& files, Expect expect) {
    const int status = status_of_child([&] {
        if (!enter_groups(membership, files)) {
            return kCannotRunHere;
        }
        expect(look());
        (void)std::fflush(nullptr);
        return ::testing::Test::HasFailure() ? 1 : 0;
    });
    if (status == kCannotRunHere) {
        GTEST_SKIP() << "no mount namespaces here";
    }
    EXPECT_EQ(status, 0) << "see what the child printed above";
}

TEST(LimitsTest, OfCgroup2AreTheLowestOfTheGroupAndThoseAboveIt) {
    in_groups("0::/a/b\n",
              {{"memory.max", "max\n"},
               {"a/memory.max", "2000\n"},
               {"a/b/memory.max", "3000\n"},
               {"a/b/memory.peak", "1500\n"},
               {"a/b/memory.events", "low 0\nhigh 1\nmax 7\noom 2\noom_kill 3\n"},
               {"a/pids.max", "50\n"},
               {"a/pids.events", "max 4\n"},
               {"a/b/pids.max", "max\n"},
               {"a/b/pids.events", "max 9\n"}},
              [](const Seen& seen) {
                  EXPECT_EQ(seen.cgroup, "/a/b");
                  EXPECT_EQ(seen[Field::cgroup_version], 2U);
                  EXPECT_EQ(seen[Field::memory_limit], 2000U);
                  EXPECT_EQ(seen[Field::memory_peak], 1500U);
                  EXPECT_EQ(seen[Field::oom_kills], 3U);
                  EXPECT_EQ(seen[Field::process_limit], 50U);
                  EXPECT_EQ(seen[Field::processes_refused], 4U)
                      << "of the groups that have a limit";
              });
}

TEST(LimitsTest, OfMaxAreNone) {
    in_groups(
        "0::/a\n",
        {{"a/memory.max", "max\n"}, {"a/memory.events", "oom_kill 0\n"}, {"a/pids.max", "max\n"}},
        [](const Seen& seen) {
            EXPECT_EQ(seen[Field::memory_limit], std::nullopt);
            EXPECT_EQ(seen[Field::processes_refused], std::nullopt);
            EXPECT_EQ(seen[Field::oom_kills], 0U) << "known to be none";
        });
}

TEST(LimitsTest, OfCgroup1AreInTheHierarchyOfEachController) {
    in_groups("12:pids,rdma:/user/x\n4:memory:/job/1\n3:cpu,cpuacct:/\n0::/init.scope\n",
              {{"memory/job/1/memory.limit_in_bytes", "4000\n"},
               {"memory/job/1/memory.stat", "cache 1\nhierarchical_memory_limit 3000\n"},
               {"memory/job/1/memory.max_usage_in_bytes", "2999\n"},
               {"memory/job/1/memory.oom_control", "oom_kill_disable 0\nunder_oom 0\noom_kill 2\n"},
               {"pids/user/x/pids.max", "12\n"},
               {"pids/user/x/pids.events", "max 1\n"},
               {"init.scope/memory.max", "1\n"}},
              [](const Seen& seen) {
                  EXPECT_EQ(seen.cgroup, "/job/1");
                  EXPECT_EQ(seen[Field::cgroup_version], 1U);
                  EXPECT_EQ(seen[Field::memory_limit], 3000U);
                  EXPECT_EQ(seen[Field::memory_peak], 2999U);
                  EXPECT_EQ(seen[Field::oom_kills], 2U);
                  EXPECT_EQ(seen[Field::process_limit], 12U);
                  EXPECT_EQ(seen[Field::processes_refused], 1U);
              });
}

TEST(LimitsTest, OfCgroup1ThatMeanNoLimitAreNone) {
    in_groups("4:memory:/\n",
              {{"memory/memory.limit_in_bytes", "9223372036854771712\n"},
               {"memory/memory.stat", "hierarchical_memory_limit 9223372036854771712\n"}},
              [](const Seen& seen) {
                  EXPECT_EQ(seen.cgroup, "/");
                  EXPECT_EQ(seen[Field::memory_limit], std::nullopt);
                  EXPECT_EQ(seen[Field::oom_kills], std::nullopt) << "this kernel does not count";
              });
}

TEST(LimitsTest, OfAContainerThatSeesItsOwnGroupAsTheMountPoint) {
    in_groups("0::/docker/5f0c22d1\n",
              {{"memory.max", "1000\n"}, {"memory.events", "oom_kill 1\n"}, {"pids.max", "20\n"}},
              [](const Seen& seen) {
                  EXPECT_EQ(seen.cgroup, "/docker/5f0c22d1");
                  EXPECT_EQ(seen[Field::memory_limit], 1000U);
                  EXPECT_EQ(seen[Field::oom_kills], 1U);
                  EXPECT_EQ(seen[Field::process_limit], 20U);
              });
}

TEST(LimitsTest, WithoutGroupsAreThoseOfTheProcessAlone) {
    in_groups("", {}, [](const Seen& seen) {
        EXPECT_EQ(seen.cgroup, "");
        EXPECT_EQ(seen[Field::cgroup_version], std::nullopt);
        EXPECT_EQ(seen[Field::memory_limit], std::nullopt);
    });
    in_groups("garbage\n:::\n9\n::\n", {},
              [](const Seen& seen) { EXPECT_EQ(seen[Field::memory_limit], std::nullopt); });
}

TEST(LimitsTest, TellTheAddressSpaceAndTheProcessesThatTheUserMayHave) {
    testing::in_a_child([] {
        const rlimit space{rlim_t{1} << 40, RLIM_INFINITY};
        const rlimit processes{17, 17};
        ASSERT_EQ(setrlimit(RLIMIT_AS, &space), 0);
        ASSERT_EQ(setrlimit(RLIMIT_NPROC, &processes), 0);
        const Seen seen = look();
        EXPECT_EQ(seen[Field::mapped_limit], std::uint64_t{1} << 40);
        EXPECT_EQ(seen[Field::user_process_limit], 17U);
    });
}

TEST(PeaksTest, AreThoseOfThisProcess) {
    std::uint64_t memory = 0;
    std::uint64_t mapped = 0;
    read_peaks(&memory, &mapped);
    EXPECT_GT(memory, std::uint64_t{1} << 20);
    EXPECT_GE(mapped, memory);
}

}  // namespace
}  // namespace cudiag
