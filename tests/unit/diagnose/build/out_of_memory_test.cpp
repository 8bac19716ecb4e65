#include "tests/unit/diagnose/build/facts.h"

namespace cudiag {
namespace {

using testing::commands_of;
using testing::facts_with;
using testing::failed;
using testing::first_case;
using testing::holds;
using testing::killed;
using testing::ran;
using testing::running;

constexpr std::uint64_t kGiga = 1'000'000'000;
constexpr const char* kGroup = "/docker/5f0c";

// ninja > c++ > cc1plus, `jobs` of them at once, of which the first was killed.
Facts killed_compiler(std::size_t jobs, std::uint64_t limit) {
    Facts facts = facts_with({failed(10, 0, "ninja", 0, 900)});
    for (std::size_t i = 0; i < jobs; ++i) {
        const auto pid = static_cast<std::int32_t>(20 + 10 * i);
        const std::string source = "/src/" + std::string(1, static_cast<char>('a' + i)) + ".cpp";
        BuildStep driver = i == 0
                               ? failed(pid, 10, "c++ -I/site/torch/include -c " + source, 100, 800)
                               : ran(pid, 10, "c++ -I/site/torch/include -c " + source, 100, 850);
        BuildStep compiler = i == 0 ? killed(pid + 1, pid, "cc1plus " + source, 200, 700)
                                    : ran(pid + 1, pid, "cc1plus " + source, 200, 840);
        compiler.at_start.cgroup = kGroup;
        compiler.at_start.cgroup_version = 2;
        compiler.at_start.memory_limit = limit;
        compiler.at_start.oom_kills = 4;
        facts.build.steps.push_back(std::move(driver));
        facts.build.steps.push_back(std::move(compiler));
    }
    return facts;
}

// As the parent read the group's counts when it saw the death.
BuildStep& victim(Facts& facts) {
    return facts.build.steps[2];
}

void count_a_kill(Facts& facts) {
    victim(facts).at_end.cgroup = kGroup;
    victim(facts).at_end.memory_peak = victim(facts).at_start.memory_limit;
    victim(facts).at_end.oom_kills = 5;
}

// g++ that ended with 1 under RLIMIT_AS.
Facts limited_compiler(std::uint64_t limit, std::uint64_t mapped) {
    BuildStep compiler = failed(20, 10, "cc1plus /src/tables.cpp", 100, 800);
    compiler.at_start.mapped_limit = limit;
    compiler.mapped_bytes = mapped;
    return testing::under_ninja(compiler);
}

// ninja > nvcc > cicc: each nvcc runs `threads` of them at once, and the first of all was killed.
Facts killed_thread(std::size_t nvccs, std::size_t threads, std::uint64_t limit) {
    Facts facts = facts_with({failed(10, 0, "ninja", 0, 900)});
    for (std::size_t i = 0; i < nvccs * threads; ++i) {
        const auto nvcc = static_cast<std::int32_t>(100 + i / threads);
        const auto pid = static_cast<std::int32_t>(200 + i);
        if (i % threads == 0) {
            facts.build.steps.push_back(failed(nvcc, 10, "nvcc --threads 4 -c a.cu", 100, 850));
        }
        BuildStep cicc = i == 0 ? killed(pid, nvcc, "cicc a.ii", 200, 700)
                                : ran(pid, nvcc, "cicc a.ii", 200, 840);
        cicc.at_start.memory_limit = limit;
        cicc.peak_bytes = kGiga;
        facts.build.steps.push_back(std::move(cicc));
    }
    return facts;
}

TEST(BuildOutOfMemory, IsCertainWhereTheGroupCountedAKill) {
    Facts facts = killed_compiler(1, 3 * kGiga);
    count_a_kill(facts);
    const auto finding = build_out_of_memory(first_case(facts));
    ASSERT_TRUE(finding);
    EXPECT_EQ(finding->slug, "build-out-of-memory");
    EXPECT_EQ(finding->confidence, Confidence::certain);
    EXPECT_EQ(finding->title,
              "cc1plus was killed (SIGKILL) by the kernel for memory, at the cgroup's limit of "
              "3.0 GB while it compiled a.cpp");
    const auto& evidence = finding->evidence;
    EXPECT_EQ(evidence["program"], "cc1plus");
    EXPECT_EQ(evidence["signal"], "SIGKILL");
    EXPECT_EQ(evidence["source"], "/src/a.cpp");
    EXPECT_EQ(evidence["limit_bytes"], 3 * kGiga);
    EXPECT_EQ(evidence["limit_kind"], "cgroup v2");
    EXPECT_EQ(evidence["cgroup"], kGroup);
    EXPECT_EQ(evidence["peak_bytes"], 3 * kGiga);
    EXPECT_EQ(evidence["oom_kill_before"], 4U);
    EXPECT_EQ(evidence["oom_kill_after"], 5U);
    EXPECT_EQ(evidence["jobs_at_once"], 1U);
    EXPECT_EQ(evidence["max_jobs"], 1U);
    ASSERT_EQ(finding->fixes.size(), 1U) << "fewer than one job cannot run";
    EXPECT_TRUE(holds(finding->fixes[0].text, "docker run --memory=4g"));
}

TEST(BuildOutOfMemory, ProposesAsManyJobsAsFitIntoTheLimit) {
    Facts facts = killed_compiler(5, 9 * kGiga);
    count_a_kill(facts);
    facts.build.steps[4].peak_bytes = 5 * kGiga / 2;  // the largest that this build has seen
    const auto finding = build_out_of_memory(first_case(facts));
    ASSERT_TRUE(finding);
    EXPECT_EQ(finding->evidence["jobs_at_once"], 5U);
    EXPECT_EQ(finding->evidence["needed_bytes"], 5 * kGiga / 2);
    EXPECT_EQ(finding->evidence["max_jobs"], 3U);
    EXPECT_EQ(commands_of(*finding).front(), "export MAX_JOBS=3 NVCC_THREADS=1");
}

TEST(BuildOutOfMemory, CountsTheCompilersOfOneNvcc) {
    const Facts facts = killed_thread(1, 4, 3 * kGiga);
    const auto finding = build_out_of_memory(first_case(facts));
    ASSERT_TRUE(finding);
    EXPECT_EQ(finding->evidence["jobs_at_once"], 4U);
    EXPECT_EQ(finding->evidence["threads_of_nvcc"], 4U);
    EXPECT_EQ(commands_of(*finding).front(), "export NVCC_THREADS=3") << "MAX_JOBS is 1 already";
}

TEST(BuildOutOfMemory, BoundsJobsAndThreadsWhereBothAreMany) {
    const Facts facts = killed_thread(3, 2, 2 * kGiga);
    const auto finding = build_out_of_memory(first_case(facts));
    ASSERT_TRUE(finding);
    EXPECT_EQ(finding->evidence["jobs_at_once"], 6U);
    EXPECT_EQ(finding->evidence["threads_of_nvcc"], 2U);
    EXPECT_EQ(commands_of(*finding).front(), "export MAX_JOBS=2 NVCC_THREADS=1");
}

TEST(BuildOutOfMemory, ProposesFewerJobsThanFailedEvenIfMoreSeemToFit) {
    Facts facts = killed_compiler(3, 100 * kGiga);
    count_a_kill(facts);
    const auto finding = build_out_of_memory(first_case(facts));
    ASSERT_TRUE(finding);
    EXPECT_EQ(finding->evidence["needed_bytes"], 2 * kGiga) << "the known peak of cc1plus";
    EXPECT_EQ(finding->evidence["max_jobs"], 2U);
}

TEST(BuildOutOfMemory, ProposesOneJobWhereNotEvenOneFits) {
    Facts facts = killed_compiler(4, kGiga);
    count_a_kill(facts);
    EXPECT_EQ(build_out_of_memory(first_case(facts))->evidence["max_jobs"], 1U);
}

TEST(BuildOutOfMemory, IsOnlyLikelyWhereNoKillWasCounted) {
    const Facts facts = killed_compiler(2, 3 * kGiga);
    const auto finding = build_out_of_memory(first_case(facts));
    ASSERT_TRUE(finding);
    EXPECT_EQ(finding->confidence, Confidence::likely);
    EXPECT_EQ(finding->title, "cc1plus was killed (SIGKILL) while it compiled a.cpp");
    EXPECT_TRUE(holds(finding->limits, "who sent SIGKILL is not known"));
}

TEST(BuildOutOfMemory, IsTheMachinesWhereTheGroupHasNoLimit) {
    Facts facts = killed_compiler(4, 0);
    count_a_kill(facts);
    const auto finding = build_out_of_memory(first_case(facts));
    ASSERT_TRUE(finding);
    EXPECT_EQ(
        finding->title,
        "cc1plus was killed (SIGKILL) by the kernel: this machine had no memory left while it "
        "compiled a.cpp");
    EXPECT_EQ(finding->evidence["limit_kind"], "none known");
    EXPECT_EQ(finding->evidence["max_jobs"], 2U) << "half of what did not fit";
}

TEST(BuildOutOfMemory, ClaimsNoNeedThatItDoesNotKnow) {
    Facts facts = killed_compiler(1, 3 * kGiga);
    count_a_kill(facts);
    facts.build.steps[1].argv = {"c++", "-c", "/src/a.cpp"};  // without torch's headers
    const auto finding = build_out_of_memory(first_case(facts));
    ASSERT_TRUE(finding);
    EXPECT_EQ(finding->evidence["needed_bytes"], 0U);
    EXPECT_FALSE(holds(finding->fixes.back().text, "needs about"));
}

TEST(BuildOutOfMemory, TakesTheCountThatAStepAboveReadLater) {
    Facts facts = killed_compiler(1, 3 * kGiga);
    BuildStep& driver = facts.build.steps[1];
    driver.at_start.cgroup = kGroup;
    driver.at_end.oom_kills = 5;
    EXPECT_EQ(build_out_of_memory(first_case(facts))->confidence, Confidence::certain);
}

TEST(BuildOutOfMemory, DoesNotCountKillsOfAnotherGroup) {
    Facts facts = killed_compiler(1, 3 * kGiga);
    BuildStep& driver = facts.build.steps[1];
    driver.at_start.cgroup = "/elsewhere";
    driver.at_end.oom_kills = 50;
    AskedProgram other;
    other.limits.cgroup = "/elsewhere";
    other.limits.oom_kills = 50;
    facts.build.asked_programs = {other};
    const auto finding = build_out_of_memory(first_case(facts));
    ASSERT_TRUE(finding);
    EXPECT_EQ(finding->confidence, Confidence::likely);
    EXPECT_EQ(finding->evidence["oom_kill_after"], 0U);
}

TEST(BuildOutOfAddressSpace, IsLikelyWhereAStepFailedNearItsLimit) {
    const Facts facts = limited_compiler(150U << 20, 149U << 20);
    const auto finding = build_out_of_address_space(first_case(facts));
    ASSERT_TRUE(finding);
    EXPECT_EQ(finding->confidence, Confidence::likely) << "a mistake would look the same";
    EXPECT_EQ(finding->title,
              "cc1plus ran out of address space at the limit of 157 MB (ulimit -v) while it "
              "compiled tables.cpp");
    EXPECT_EQ(finding->evidence["signal"], "none");
    EXPECT_EQ(finding->evidence["limit_kind"], "RLIMIT_AS");
    EXPECT_EQ(finding->evidence["limit_bytes"], 150U << 20);
    EXPECT_EQ(finding->evidence["peak_bytes"], 149U << 20);
    EXPECT_EQ(commands_of(*finding), std::vector<std::string>{"ulimit -v unlimited"});
}

TEST(BuildOutOfAddressSpace, IsSilentWhereItWasHardlyUsed) {
    const Facts facts = limited_compiler(1000U << 20, 200U << 20);
    EXPECT_FALSE(build_out_of_address_space(first_case(facts)));
    EXPECT_FALSE(build_out_of_memory(first_case(facts)));
}

TEST(BuildOutOfAddressSpace, IsSilentWhereThereIsNoLimit) {
    const Facts facts = limited_compiler(0, 200U << 20);
    EXPECT_FALSE(build_out_of_address_space(first_case(facts)));
}

TEST(BuildOutOfMemory, IsSilentOfOtherSignals) {
    const Facts facts =
        testing::under_ninja(killed(20, 10, "cc1plus /src/a.cpp", 100, 800, SIGSEGV));
    EXPECT_FALSE(build_out_of_memory(first_case(facts)));
}

}  // namespace
}  // namespace cudiag
