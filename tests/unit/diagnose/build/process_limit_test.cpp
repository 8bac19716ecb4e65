#include <cerrno>

#include "tests/unit/diagnose/build/facts.h"

namespace cudiag {
namespace {

using testing::commands_of;
using testing::facts_with;
using testing::failed;
using testing::first_case;
using testing::ran;

// ninja with `jobs` compilers, of which the first could not start its own compiler.
Facts crowded(std::uint64_t limit, std::uint64_t refused_before, std::uint64_t refused_after,
              std::size_t jobs = 1) {
    Facts facts = facts_with({failed(10, 0, "ninja", 0, 900)});
    for (std::size_t i = 0; i < jobs; ++i) {
        const auto pid = static_cast<std::int32_t>(20 + i);
        facts.build.steps.push_back(i == 0 ? failed(pid, 10, "g++ -c a.cpp", 100, 500)
                                           : ran(pid, 10, "g++ -c b.cpp", 100, 600));
    }
    BuildStep& step = facts.build.steps[1];
    step.at_start.processes_refused = refused_before;
    step.at_end.process_limit = limit;
    step.at_end.processes_refused = refused_after;
    return facts;
}

TEST(BuildProcessLimit, TellsTheLimitAndWhatWasRefusedDuringTheStep) {
    const Facts facts = crowded(48, 3, 10, 8);
    const auto finding = build_process_limit(first_case(facts));
    ASSERT_TRUE(finding);
    EXPECT_EQ(finding->slug, "build-process-limit");
    EXPECT_EQ(finding->title,
              "no more processes may be started: pids.max is 48, and 7 were refused during the "
              "build");
    EXPECT_EQ(finding->evidence["limit"], 48U);
    EXPECT_EQ(finding->evidence["limit_kind"], "cgroup pids.max");
    EXPECT_EQ(finding->evidence["refused"], 7U);
    EXPECT_EQ(finding->evidence["jobs_at_once"], 8U);
    EXPECT_EQ(finding->evidence["max_jobs"], 4U);
    EXPECT_EQ(commands_of(*finding).front(), "export MAX_JOBS=4");
}

TEST(BuildProcessLimit, ProposesNoMoreThanHalfOfTheJobsThatFailed) {
    const Facts facts = crowded(4000, 0, 1, 6);
    EXPECT_EQ(build_process_limit(first_case(facts))->evidence["max_jobs"], 3U);
}

TEST(BuildProcessLimit, ProposesOneJobUnderATinyLimit) {
    const Facts facts = crowded(12, 0, 1, 6);
    EXPECT_EQ(build_process_limit(first_case(facts))->evidence["max_jobs"], 1U);
}

TEST(BuildProcessLimit, KnowsTheLimitOfTheUserByTheCallsThatFailed) {
    Facts facts = crowded(0, 0, 0, 4);
    facts.build.steps[1].at_end.user_process_limit = 24;
    AskedProgram refused;
    refused.parent = 20;
    refused.path = "cc1plus";
    refused.error = EAGAIN;
    refused.places = 3;
    AskedProgram of_another = refused;
    of_another.parent = 21;
    facts.build.asked_programs = {refused, of_another};
    const auto finding = build_process_limit(first_case(facts));
    ASSERT_TRUE(finding);
    EXPECT_EQ(finding->evidence["limit"], 24U);
    EXPECT_EQ(finding->evidence["limit_kind"], "RLIMIT_NPROC");
    EXPECT_EQ(finding->evidence["refused"], 3U);
    EXPECT_EQ(finding->evidence["max_jobs"], 2U);
    facts.build.asked_programs[0].error = ENOENT;
    EXPECT_FALSE(build_process_limit(first_case(facts))) << "it was not there at all";
}

TEST(BuildProcessLimit, IsSilentWhereNothingWasRefusedMeanwhile) {
    const Facts facts = crowded(48, 10, 10);
    EXPECT_FALSE(build_process_limit(first_case(facts)));
}

TEST(BuildProcessLimit, IsSilentWhereNoLimitIsKnown) {
    const Facts facts = crowded(0, 0, 10);
    EXPECT_FALSE(build_process_limit(first_case(facts)));
}

}  // namespace
}  // namespace cudiag
