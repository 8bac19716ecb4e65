#include "diagnose/build/steps.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <csignal>

#include "tests/unit/diagnose/entries.h"

namespace cudiag {
namespace {

using testing::number;
using testing::text;

EntryRead started(std::uint64_t time, std::uint64_t pid, const std::string& exe,
                  std::uint64_t parent = 1) {
    return {EntryKind::step_started,
            static_cast<std::uint32_t>(pid),
            time,
            {number(Field::pid, pid), number(Field::parent, parent), text(Field::path, exe)}};
}

EntryRead ended(std::uint64_t time, std::uint64_t pid, std::uint64_t status) {
    return {EntryKind::step_ended,
            static_cast<std::uint32_t>(pid),
            time,
            {number(Field::pid, pid), number(Field::how, static_cast<std::uint64_t>(EndHow::exit)),
             number(Field::status, status)}};
}

EntryRead asked(std::uint64_t time, std::uint64_t pid, std::uint64_t error, std::uint64_t status) {
    return {EntryKind::asked_program,
            1,
            time,
            {number(Field::pid, pid), number(Field::parent, 1), text(Field::path, "/bin/x"),
             number(Field::error, error), number(Field::status, status)}};
}

Build build_with(std::vector<EntryRead> entries) {
    Recording journal;
    journal.entries = std::move(entries);
    return build_of(journal);
}

std::string tool_of(const std::string& exe) {
    BuildStep step;
    step.exe = exe;
    return step.tool();
}

TEST(BuildSteps, AreAStartAndAnEndOfOnePid) {
    const Build build = build_with({started(10, 7, "/usr/bin/g++"), started(11, 8, "/usr/bin/as"),
                                    ended(20, 7, 1), ended(30, 8, 0)});
    ASSERT_EQ(build.steps.size(), 2U);
    EXPECT_EQ(build.steps[0].exe, "/usr/bin/g++");
    EXPECT_EQ(build.steps[0].start_ns, 10U);
    EXPECT_EQ(build.steps[0].end_ns, 20U);
    EXPECT_TRUE(build.steps[0].failed());
    EXPECT_EQ(build.steps[1].end_ns, 30U);
    EXPECT_FALSE(build.steps[1].failed());
}

TEST(BuildSteps, OfAPidThatIsUsedAgainAreTwo) {
    const Build build = build_with({started(10, 7, "/usr/bin/g++"), ended(20, 7, 0),
                                    started(30, 7, "/usr/bin/ld"), ended(40, 7, 1)});
    ASSERT_EQ(build.steps.size(), 2U);
    EXPECT_FALSE(build.steps[0].failed());
    EXPECT_EQ(build.steps[0].end_ns, 20U);
    EXPECT_TRUE(build.steps[1].failed());
    EXPECT_EQ(build.step_of(7, 15), &build.steps[0]);
    EXPECT_EQ(build.step_of(7, 35), &build.steps[1]);
    EXPECT_EQ(build.step_of(7, 5), nullptr);
}

TEST(BuildSteps, HaveTheParentThatLivedWhenTheyBegan) {
    const Build build = build_with(
        {started(10, 7, "/usr/bin/make"), started(11, 8, "/usr/bin/g++", 7), ended(20, 8, 0),
         ended(21, 7, 0), started(30, 7, "/usr/bin/cmake"), started(31, 8, "/usr/bin/gcc", 7)});
    ASSERT_EQ(build.steps.size(), 4U);
    EXPECT_EQ(build.parent_of(build.steps[1]), &build.steps[0]);
    EXPECT_EQ(build.parent_of(build.steps[3]), &build.steps[2]);
    EXPECT_EQ(build.parent_of(build.steps[0]), nullptr);
}

TEST(BuildSteps, AreNoChildrenOfAStepThatHadEndedBefore) {
    // A python, no step itself, has the pid of a compiler that is gone.
    const Build build = build_with({started(10, 7, "/usr/bin/cc1plus"), ended(20, 7, 1),
                                    started(30, 9, "/usr/bin/g++", 7), ended(40, 9, 1)});
    EXPECT_EQ(build.step_of(7, 20), &build.steps[0]);
    EXPECT_EQ(build.step_of(7, 21), nullptr);
    EXPECT_EQ(build.parent_of(build.steps[1]), nullptr);
}

TEST(BuildSteps, NeverFormACircleOfParents) {
    const Build build =
        build_with({started(10, 7, "/usr/bin/make", 8), started(10, 8, "/usr/bin/make", 7)});
    ASSERT_EQ(build.steps.size(), 2U);
    std::size_t depth = 0;
    for (const BuildStep* step = &build.steps[0]; step != nullptr && depth < 10; ++depth) {
        step = build.parent_of(*step);
    }
    EXPECT_LT(depth, 10U);
}

TEST(BuildSteps, EndWithoutFailingWhereTheProgramBecomesAnother) {
    const Build build =
        build_with({started(10, 7, "/usr/bin/ccache"), started(15, 7, "/usr/bin/g++"),
                    started(16, 8, "/usr/lib/gcc/x/12/cc1plus", 7), ended(20, 7, 1)});
    ASSERT_EQ(build.steps.size(), 3U);
    EXPECT_EQ(build.steps[0].how, EndHow::exec);
    EXPECT_EQ(build.steps[0].end_ns, 15U);
    EXPECT_FALSE(build.steps[0].failed());
    EXPECT_TRUE(build.steps[1].failed());
    EXPECT_EQ(build.parent_of(build.steps[2]), &build.steps[1]);
}

TEST(BuildSteps, WithoutAnEndHaveNotFailed) {
    const Build build = build_with({started(10, 7, "/usr/bin/g++")});
    ASSERT_EQ(build.steps.size(), 1U);
    EXPECT_FALSE(build.steps[0].ended());
    EXPECT_FALSE(build.steps[0].failed());
    EXPECT_EQ(build.steps[0].end_ns, 0U);
    EXPECT_EQ(build.step_of(7, UINT64_MAX), &build.steps[0]);
}

TEST(BuildSteps, OfAShellThatFoundNothingAreAnEndAlone) {
    EntryRead shell = ended(20, 7, 127);
    shell.fields.push_back(text(Field::path, "/usr/bin/dash"));
    shell.fields.push_back(text(Field::argument, "sh"));
    shell.fields.push_back(text(Field::argument, "-c"));
    const Build build = build_with({shell});
    ASSERT_EQ(build.steps.size(), 1U);
    EXPECT_EQ(build.steps[0].exe, "/usr/bin/dash");
    EXPECT_EQ(build.steps[0].argv, (std::vector<std::string>{"sh", "-c"}));
    EXPECT_EQ(build.steps[0].status, 127);
    EXPECT_TRUE(build.steps[0].failed());
}

TEST(BuildSteps, AreNotMadeOfAnEndThatSaysNoProgram) {
    EXPECT_TRUE(build_with({ended(20, 7, 1)}).steps.empty());
}

TEST(BuildSteps, AreKilledAsTheirParentSaw) {
    EntryRead death = asked(20, 7, 0, SIGKILL);
    death.fields.push_back(text(Field::cgroup, "/job"));
    death.fields.push_back(number(Field::oom_kills, 3));
    const Build build = build_with({started(10, 7, "/usr/bin/cc1plus"), death});
    ASSERT_EQ(build.steps.size(), 1U);
    EXPECT_EQ(build.steps[0].signal, SIGKILL);
    EXPECT_EQ(build.steps[0].end_ns, 20U);
    EXPECT_TRUE(build.steps[0].failed());
    EXPECT_EQ(build.steps[0].at_end.cgroup, "/job");
    EXPECT_EQ(build.steps[0].at_end.oom_kills, 3U);
    EXPECT_EQ(build.asked_programs.size(), 1U);
}

TEST(BuildSteps, AreNotEndedByWhatTheirParentSawOfAnExitOrOfAFailedStart) {
    const Build build = build_with(
        {started(10, 7, "/usr/bin/g++"), asked(20, 7, 0, 1 << 8), asked(21, 7, ENOENT, 0)});
    ASSERT_EQ(build.steps.size(), 1U);
    EXPECT_FALSE(build.steps[0].ended());
    ASSERT_EQ(build.asked_programs.size(), 2U);
    EXPECT_EQ(build.asked_programs[0].status, 1 << 8);
    EXPECT_EQ(build.asked_programs[1].error, ENOENT);
}

TEST(BuildSteps, KeepLimitsOfTheirStartAndOfTheirEndApart) {
    EntryRead start = started(10, 7, "/usr/bin/g++");
    start.fields.push_back(number(Field::memory_limit, 1000));
    start.fields.push_back(number(Field::processes_refused, 1));
    EntryRead end = ended(20, 7, 1);
    end.fields.push_back(number(Field::process_limit, 12));
    end.fields.push_back(number(Field::processes_refused, 5));
    end.fields.push_back(number(Field::peak_bytes, 77));
    end.fields.push_back(number(Field::mapped_bytes, 88));
    const Build build = build_with({start, end});
    const BuildStep& step = build.steps.at(0);
    EXPECT_EQ(step.at_start.memory_limit, 1000U);
    EXPECT_EQ(step.at_start.process_limit, std::nullopt);
    EXPECT_EQ(step.at_start.processes_refused, 1U);
    EXPECT_EQ(step.at_end.process_limit, 12U);
    EXPECT_EQ(step.at_end.processes_refused, 5U);
    EXPECT_EQ(step.peak_bytes, 77U);
    EXPECT_EQ(step.mapped_bytes, 88U);
}

TEST(BuildSteps, HaveTheirOpensInOrderWithoutOneThatIsCut) {
    EntryRead end = ended(20, 7, 1);
    end.fields.push_back(text(Field::opens, std::string("-/a/x.h\0+\0+y.h\0-/b/cu", 21)));
    const Build build = build_with({started(10, 7, "/usr/bin/g++"), end});
    const std::vector<OpenedFile>& opens = build.steps.at(0).opens;
    ASSERT_EQ(opens.size(), 2U);
    EXPECT_EQ(opens[0].path, "/a/x.h");
    EXPECT_FALSE(opens[0].opened);
    EXPECT_EQ(opens[1].path, "y.h");
    EXPECT_TRUE(opens[1].opened);
}

TEST(BuildSteps, KnowThatTheirArgumentsWereCut) {
    EntryRead start = started(10, 7, "/usr/bin/g++");
    start.fields.push_back(text(Field::argument, "g++"));
    start.fields.push_back(text(Field::name, "CPATH"));
    start.fields.push_back(text(Field::value, "/a:/b"));
    start.fields.push_back(number(Field::count, 1));
    EXPECT_FALSE(build_with({start}).steps.at(0).argv_cut);
    start.fields.back() = number(Field::count, 300);
    const Build build = build_with({start});
    EXPECT_TRUE(build.steps.at(0).argv_cut);
    EXPECT_EQ(build.steps.at(0).environment.at("CPATH"), "/a:/b");
}

TEST(BuildNotes, TellLocksFromBuildFilesAndKeepTheirFrames) {
    const EntryRead lock{
        EntryKind::lock_held,
        7,
        50,
        {number(Field::pid, 7), text(Field::path, "/x/lock"), text(Field::python_file, "baton.py"),
         number(Field::python_line, 31), text(Field::python_function, "try_acquire")}};
    const EntryRead file{
        EntryKind::build_file, 7, 60, {number(Field::pid, 7), text(Field::path, "/x/build.ninja")}};
    const Build build = build_with({lock, file, {static_cast<EntryKind>(999), 7, 70, {}}});
    EXPECT_FALSE(build.empty());
    ASSERT_EQ(build.locks.size(), 1U);
    EXPECT_EQ(build.locks[0].path, "/x/lock");
    ASSERT_EQ(build.locks[0].python.size(), 1U);
    EXPECT_EQ(build.locks[0].python[0].file, "baton.py");
    EXPECT_EQ(build.locks[0].python[0].line, 31U);
    EXPECT_EQ(build.locks[0].python[0].function, "try_acquire");
    ASSERT_EQ(build.build_files.size(), 1U);
    EXPECT_EQ(build.build_files[0].pid, 7);
    EXPECT_TRUE(build.steps.empty());
}

TEST(BuildNotes, AreNoBuildWhereThereAreNone) {
    EXPECT_TRUE(build_with({}).empty());
    EXPECT_TRUE(build_with({asked(20, 7, ENOENT, 0)}).empty());
}

TEST(BuildStepTool, IsNamedWithoutTargetAndVersion) {
    EXPECT_EQ(tool_of("/usr/bin/x86_64-linux-gnu-g++-12"), "g++");
    EXPECT_EQ(tool_of("/conda/bin/x86_64-conda-linux-gnu-c++"), "c++");
    EXPECT_EQ(tool_of("/usr/bin/aarch64-linux-gnu-gcc-11.4"), "gcc");
    EXPECT_EQ(tool_of("/usr/lib/llvm-14/bin/clang++-14"), "clang++");
    EXPECT_EQ(tool_of("/usr/lib/gcc/x86_64-linux-gnu/12/cc1plus"), "cc1plus");
    EXPECT_EQ(tool_of("/usr/bin/x86_64-linux-gnu-ld.bfd"), "ld.bfd");
    EXPECT_EQ(tool_of("/usr/local/cuda/bin/cudafe++"), "cudafe++");
    EXPECT_EQ(tool_of("/usr/libexec/gcc/x/12/lto-wrapper"), "lto-wrapper");
    EXPECT_EQ(tool_of("ninja-build"), "ninja-build");
    EXPECT_EQ(tool_of(""), "");
    EXPECT_EQ(tool_of("/usr/bin/g++-12-x"), "g++-12-x");
    EXPECT_EQ(tool_of("/usr/bin/a-b"), "a-b");
}

TEST(BuildStepTool, SurvivesANameOfAMegabyte) {
    const std::string digits(1 << 20, '1');
    EXPECT_EQ(tool_of("/usr/bin/gcc-" + digits), "gcc");
    EXPECT_EQ(tool_of("/usr/bin/" + digits + "-" + digits + "-ld"), "ld");
    EXPECT_EQ(tool_of(digits), digits);
}

}  // namespace
}  // namespace cudiag
