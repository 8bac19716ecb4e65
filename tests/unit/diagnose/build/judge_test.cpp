#include "diagnose/build/judge.h"

#include "tests/unit/diagnose/build/facts.h"

namespace cudiag {
namespace {

using testing::at;
using testing::facts_with;
using testing::failed;

// nvcc 13.0 that is asked for an architecture which it does not know.
BuildStep refused(const ElfWorld& world, std::int32_t pid, const std::string& architecture,
                  std::uint64_t end) {
    return failed(pid, 10, testing::toolkit(world, "13.0") + " -arch=" + architecture + " -c x.cu",
                  100, end);
}

std::vector<std::string> slugs_of(const Facts& facts) {
    std::vector<std::string> slugs;
    for (const BuildFinding& each : judge_build(facts)) {
        slugs.push_back((each.consequence ? "+" : "") + each.finding.slug);
    }
    return slugs;
}

using Slugs = std::vector<std::string>;

TEST(JudgeBuild, PutsTheFirstFailureFirstAndTheOthersBehindIt) {
    const ElfWorld world;
    const Facts facts = facts_with(
        {failed(10, 0, "make -k", 0, 900), refused(world, 20, "sm_50", 800),
         failed(21, 10, testing::toolkit(world, "11.8", "old") + " -std=c++20 -c y.cu", 100, 700)});
    EXPECT_EQ(slugs_of(facts), (Slugs{"build-toolkit-mismatch", "+build-unsupported-arch"}));
}

TEST(JudgeBuild, TellsWhatManyStepsFailedOfOnce) {
    const ElfWorld world;
    const Facts facts =
        facts_with({failed(10, 0, "ninja -k0", 0, 900), refused(world, 20, "sm_50", 700),
                    refused(world, 21, "sm_50", 800)});
    EXPECT_EQ(slugs_of(facts), Slugs{"build-unsupported-arch"});
}

TEST(JudgeBuild, SaysNothingOfConsequencesOfAFailureThatItDoesNotKnow) {
    const ElfWorld world;
    const Facts facts = facts_with({failed(10, 0, "make -k", 0, 900),
                                    failed(19, 10, "g++ -c mistake.cpp", 100, 200),
                                    refused(world, 20, "sm_50", 700)});
    EXPECT_EQ(slugs_of(facts), Slugs{});
}

TEST(JudgeBuild, AsksTheExceptionWhereNoStepTells) {
    const ElfWorld world;
    Facts facts;
    facts.processes = {testing::python_that_raised(
        world, "OSError", "CUDA_HOME environment variable is not set. Please set it")};
    EXPECT_EQ(slugs_of(facts), Slugs{"build-missing-compiler"});
    facts.processes[0].end_status = 0;
    EXPECT_EQ(slugs_of(facts), Slugs{}) << "the program caught it";
}

TEST(JudgeBuild, TellsWhatABuildIsGoingToMissWhileItRuns) {
    const ElfWorld world;
    Facts facts;
    facts.build.build_files.emplace_back().path =
        world.text("build.ninja", "nvcc = /gone/bin/nvcc\nbuild fused.o: cuda_compile fused.cu\n");
    EXPECT_EQ(slugs_of(facts), Slugs{}) << "it is over: its steps tell";
    facts.root_runs = true;
    EXPECT_EQ(slugs_of(facts), Slugs{"build-missing-compiler"});
}

TEST(JudgeBuild, NeverTakesANoteForAConsequence) {
    const ElfWorld world;
    Facts facts = testing::under_ninja(refused(world, 20, "sm_50", 800));
    facts.build.steps[0].end_ns = at(45'000);
    EXPECT_EQ(slugs_of(facts), (Slugs{"build-unsupported-arch", "build-slow"}));
}

TEST(JudgeBuild, SaysNothingOfNothing) {
    EXPECT_EQ(slugs_of(Facts{}), Slugs{});
}

}  // namespace
}  // namespace cudiag
