#include "diagnose/build/case.h"

#include "tests/unit/diagnose/build/facts.h"

namespace cudiag {
namespace {

using testing::at;
using testing::facts_with;
using testing::failed;
using testing::first_case;
using testing::killed;
using testing::ran;
using testing::running;
using testing::under_ninja;
using testing::under_nvcc;

// Pids of the steps that are to blame, the first one first.
std::vector<std::int32_t> blamed(const Facts& facts) {
    std::vector<std::int32_t> pids;
    for (const BuildCase& c : failed_steps(facts)) {
        pids.push_back(c.step.pid);
    }
    return pids;
}

using Pids = std::vector<std::int32_t>;

Process python_that_ended(int status, const std::string& type = "",
                          const std::string& message = "") {
    Process process;
    process.pid = process.root_pid = 5;
    process.exe = "/usr/bin/python3.11";
    process.argv = {"python3", "train.py"};
    process.end = EndHow::exit;
    process.end_status = status;
    if (!type.empty()) {
        PythonException exception;
        exception.type = type;
        exception.message = message;
        process.exceptions = {exception};
    }
    return process;
}

TEST(FailedSteps, AreTheLeavesWhoseFailureWasHandedUp) {
    const Facts facts =
        facts_with({failed(10, 0, "ninja", 0, 900), failed(20, 10, "c++ -c /src/a.cpp", 100, 800),
                    failed(30, 20, "/usr/lib/gcc/x/12/cc1plus /src/a.cpp", 200, 700),
                    ran(40, 10, "c++ -c /src/b.cpp", 100, 600)});
    const std::vector<BuildCase> cases = failed_steps(facts);
    ASSERT_EQ(cases.size(), 1U);
    EXPECT_EQ(cases[0].step.pid, 30);
    ASSERT_EQ(cases[0].above.size(), 2U);
    EXPECT_EQ(cases[0].above[0]->pid, 20);
    EXPECT_EQ(cases[0].above[1]->pid, 10);
    EXPECT_EQ(cases[0].root, nullptr);
}

TEST(FailedSteps, AreNoneWhereAParentEndedWell) {
    EXPECT_EQ(blamed(facts_with(
                  {ran(10, 0, "cmake -S .", 0, 900), failed(20, 10, "gcc -c probe.c", 100, 200)})),
              Pids{});
    EXPECT_EQ(blamed(facts_with({ran(10, 0, "make", 0, 900), failed(20, 10, "gcc -c a.c", 100, 200),
                                 ran(21, 10, "gcc -c a.c", 300, 400)})),
              Pids{});
}

TEST(FailedSteps, AreNoneWhereAConfigureWentOnToItsNextProbe) {
    // The shell that runs ./configure is no step, and its parent, 5, is none either.
    std::vector<BuildStep> probes;
    for (std::int32_t i = 0; i < 20; ++i) {
        const auto begin = static_cast<std::uint64_t>(i) * 100;
        probes.push_back(failed(100 + i, 5, "gcc -E conftest.c", begin, begin + 50));
    }
    probes.push_back(ran(200, 5, "gcc -c conftest.c", 5000, 5050));
    EXPECT_EQ(blamed(facts_with(probes)), Pids{});
    // Once it has ended: even the last probe that failed was only asked.
    probes.push_back(failed(201, 5, "gcc -c conftest.c -lcudart", 5100, 5150));
    EXPECT_EQ(blamed(facts_with(probes)), Pids{});
}

TEST(FailedSteps, AreNoneWhereTheToolWasTriedAgainWithSuccess) {
    EXPECT_EQ(blamed(facts_with({failed(20, 5, "g++ -march=native a.cpp", 0, 100),
                                 ran(21, 5, "g++ a.cpp", 200, 300)})),
              Pids{});
}

TEST(FailedSteps, AreTheLastOneWhereNothingFollowedIt) {
    EXPECT_EQ(
        blamed(facts_with({ran(20, 5, "g++ -c a.cpp", 0, 100), failed(21, 5, "ld a.o", 200, 300)})),
        Pids{21});
}

TEST(FailedSteps, OfMakeThatKeepsGoingAreAllThatFailed) {
    EXPECT_EQ(
        blamed(facts_with(
            {failed(10, 0, "make -k", 0, 900, 2), failed(20, 10, "g++ -c a.cpp", 100, 200),
             ran(21, 10, "g++ -c b.cpp", 210, 300), failed(22, 10, "nvcc -c c.cu", 310, 400)})),
        (Pids{20, 22}));
}

TEST(FailedSteps, ThatRanAtOnceAreInTheOrderInWhichTheyEnded) {
    EXPECT_EQ(blamed(facts_with({failed(10, 0, "ninja -j2", 0, 900),
                                 failed(20, 10, "g++ -c slow.cpp", 100, 800),
                                 failed(21, 10, "g++ -c quick.cpp", 110, 200)})),
              (Pids{21, 20}));
}

TEST(FailedSteps, AreThoseThatWereKilled) {
    EXPECT_EQ(
        blamed(facts_with({failed(10, 0, "ninja", 0, 900), failed(20, 10, "g++ -c a.cpp", 100, 800),
                           killed(30, 20, "cc1plus a.cpp", 200, 700)})),
        Pids{30});
}

TEST(FailedSteps, AreTheDriverWhereNobodySawItsCompilerEnd) {
    EXPECT_EQ(
        blamed(facts_with({failed(10, 0, "ninja", 0, 900), failed(20, 10, "g++ -c a.cpp", 100, 800),
                           running(30, 20, "cc1plus a.cpp", 200)})),
        Pids{20});
}

TEST(FailedSteps, AreCMakesTestOfACompilerAlthoughItGoesOn) {
    EXPECT_EQ(blamed(facts_with({failed(10, 0, "cmake -S .", 0, 900),
                                 failed(20, 10, "c++ -o x testCXXCompiler.cxx", 100, 200),
                                 ran(21, 10, "cc -c other.c", 300, 400)})),
              Pids{20});
    EXPECT_EQ(blamed(facts_with({failed(10, 0, "cmake -S .", 0, 900),
                                 failed(20, 10, "c++ -o x src.cxx", 100, 200),
                                 ran(21, 10, "cc -c other.c", 300, 400)})),
              Pids{})
        << "a try_compile";
}

TEST(FailedSteps, AreNoneWhereTheProgramEndedWellOrStillRuns) {
    Facts facts = under_ninja(failed(20, 10, "g++ -c a.cpp", 100, 200));
    facts.processes = {python_that_ended(0)};
    EXPECT_EQ(blamed(facts), Pids{});
    facts.processes = {python_that_ended(1)};
    EXPECT_EQ(blamed(facts), Pids{20});
    facts.root_runs = true;
    EXPECT_EQ(blamed(facts), Pids{});
}

TEST(FailedSteps, AreNoneWhereTheProgramEndedOfSomethingElse) {
    Facts facts = under_ninja(failed(20, 10, "g++ -c a.cpp", 100, 200));
    facts.processes = {python_that_ended(1, "KeyError", "'labels'")};
    EXPECT_EQ(blamed(facts), Pids{});
    facts.processes = {
        python_that_ended(1, "RuntimeError", "Error building extension 'fused_adam'")};
    EXPECT_EQ(blamed(facts), Pids{20});
    EXPECT_EQ(first_case(facts).root, &facts.processes[0]);
}

TEST(FailedSteps, BelongToTheProcessThatPrintsForTheRun) {
    Facts facts = under_ninja(failed(20, 10, "g++ -c a.cpp", 100, 200));
    Process worker = python_that_ended(0);
    worker.pid = 6;  // of root 5
    facts.processes = {worker, python_that_ended(1)};
    EXPECT_EQ(blamed(facts), Pids{20});
    EXPECT_EQ(first_case(facts).root, &facts.processes[1]);
}

TEST(BuildCase, HasTheEnvironmentThatTheBuildWasStartedWith) {
    Facts facts =
        under_ninja(failed(20, 10, "g++ -c a.cpp", 100, 200), {{"CUDA_HOME", "/opt/cuda"}});
    facts.processes = {python_that_ended(1)};
    facts.processes[0].environment = {{"CUDA_HOME", "/of/python"}, {"CPATH", "/x"}};
    EXPECT_EQ(first_case(facts).variable("CUDA_HOME"), "/opt/cuda");
    EXPECT_EQ(first_case(facts).variable("CPATH"), "") << "the program may have changed it";
    facts.build.steps[0].environment.clear();
    EXPECT_EQ(first_case(facts).variable("CPATH"), "/x");
}

TEST(BuildCase, NamesTheSourceAsTheUserDid) {
    const Facts facts = under_nvcc("/opt/cuda/bin/nvcc",
                                   failed(40, 30, "cudafe++ /tmp/tmpxft_0001.cpp4.ii", 300, 600));
    const BuildCase c = first_case(facts);
    EXPECT_EQ(c.source(), "/src/fused.cu");
    ASSERT_NE(c.nvcc(), nullptr);
    EXPECT_EQ(c.nvcc()->pid, 20);
    EXPECT_EQ(c.above_named({"ninja"})->pid, 10);
    EXPECT_EQ(c.above_named({"make", "cmake"}), nullptr);

    const Facts relative = under_ninja(failed(20, 10, "g++ -c csrc/a.cpp -o a.o", 100, 200));
    EXPECT_EQ(first_case(relative).source(), "/project/csrc/a.cpp");
    const Facts none = under_ninja(failed(20, 10, "ld -o x a.o", 100, 200));
    EXPECT_EQ(first_case(none).source(), "");
}

TEST(BuildCase, TakesTheToolkitOfItsNvccBeforeThatOfCudaHome) {
    const ElfWorld world;
    const std::string nvcc = testing::toolkit(world, "11.8", "cuda-11.8");
    testing::toolkit(world, "13.0", "cuda-13.0");
    const testing::Environment home{{"CUDA_HOME", world.path("cuda-13.0")}};
    const Facts cuda = under_nvcc(nvcc, failed(40, 30, "cc1plus a.cpp", 300, 600), home);
    const auto toolkit = first_case(cuda).toolkit();
    ASSERT_TRUE(toolkit);
    EXPECT_EQ(toolkit->release, "11.8");
    EXPECT_EQ(toolkit->home, world.path("cuda-11.8"));
    EXPECT_EQ(toolkit->nvcc, nvcc);

    const Facts host = under_ninja(failed(20, 10, "g++ -c a.cpp", 100, 200), home);
    EXPECT_EQ(first_case(host).toolkit().value().release, "13.0");
    const Facts neither = under_ninja(failed(20, 10, "g++ -c a.cpp", 100, 200));
    EXPECT_FALSE(first_case(neither).toolkit());
}

TEST(BuildCase, KnowsTorchByTheHeadersThatAreUsed) {
    const ElfWorld world;
    const std::string site = testing::wheel(world, "torch", "2.13.0+cu130");
    const Facts facts =
        under_ninja(failed(20, 10, "g++ -I" + site + "/torch/include -c a.cpp", 100, 200));
    EXPECT_EQ(first_case(facts).site_packages(), std::vector<std::string>{site});
    EXPECT_EQ(first_case(facts).torch_version(), "2.13.0+cu130");
    EXPECT_EQ(first_case(facts).python(), "python3");
    testing::program(world, "venv/bin/python");
    EXPECT_EQ(first_case(facts).python(), world.path("venv/bin/python"));
}

TEST(BuildFinding, SaysWhatFailedAndWhatStartedIt) {
    const Facts facts = under_nvcc("/opt/cuda/bin/nvcc", failed(40, 30, "cc1plus a", 300, 600));
    const Finding finding = begin_finding(first_case(facts), "build-x", "title");
    EXPECT_EQ(finding.slug, "build-x");
    EXPECT_EQ(finding.severity, Severity::error);
    EXPECT_EQ(finding.pid, 40);
    EXPECT_EQ(finding.time_ns, at(600));
    EXPECT_EQ(finding.evidence["failed"], "cc1plus");
    EXPECT_EQ(finding.evidence["started_by"], (nlohmann::ordered_json{"gcc", "nvcc", "ninja"}));
}

TEST(RunningAt, CountsTheStepsOfATool) {
    const Facts facts =
        facts_with({ran(1, 0, "cc1plus a", 100, 200), running(2, 0, "cc1plus b", 150),
                    ran(3, 0, "cc1plus c", 201, 300), ran(4, 0, "cicc d", 100, 300)});
    EXPECT_EQ(running_at(facts.build, "cc1plus", at(200)), 2U);
    EXPECT_EQ(running_at(facts.build, "cc1plus", at(99)), 0U);
    EXPECT_EQ(running_at(facts.build, "cicc", at(200)), 1U);
    EXPECT_EQ(running_at(facts.build, "ptxas", at(200)), 0U);
}

}  // namespace
}  // namespace cudiag
