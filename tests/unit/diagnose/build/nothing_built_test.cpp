#include "tests/unit/diagnose/build/facts.h"

namespace cudiag {
namespace {

using testing::commands_of;
using testing::holds;
using testing::python_that_raised;

// A python that had ninja build build/fused.so, and could not load it.
struct JitWorld : ElfWorld {
    JitWorld() {
        const std::string error =
            path("build/fused.so") + ": cannot open shared object file: No such file or directory";
        text("build/build.ninja", "");
        Process process = python_that_raised(*this, "ImportError", error);
        AskedProgram ninja;
        ninja.path = testing::program(*this, "venv/bin/ninja",
                                      "\x7f"
                                      "ELF");
        ninja.arguments = "ninja -v";
        process.asked_programs = {ninja};
        failure.error = error;
        failure.asked = path("build/fused.so");
        failure.time_ns = testing::at(950);
        facts.processes = {process};
    }

    AskedProgram& ninja() { return facts.processes[0].asked_programs[0]; }

    std::optional<Finding> finding() const {
        return build_nothing_built(facts, facts.processes[0], failure);
    }

    Facts facts;
    LoadFailure failure;
};

TEST(BuildNothingBuilt, IsANinjaThatEndedWellAndLeftNoLibrary) {
    const JitWorld world;
    const auto finding = world.finding();
    ASSERT_TRUE(finding);
    EXPECT_EQ(finding->slug, "build-nothing-built");
    EXPECT_EQ(finding->title, "ninja was called, ended well and built nothing: there is no " +
                                  world.path("build/fused.so"));
    EXPECT_EQ(finding->evidence["ninja"], world.path("venv/bin/ninja"));
    EXPECT_EQ(finding->evidence["argv"], "ninja -v");
    EXPECT_EQ(finding->evidence["output"], world.path("build/fused.so"));
    EXPECT_EQ(finding->evidence["patched_file"], "");
    EXPECT_EQ(commands_of(*finding), std::vector<std::string>{world.path("venv/bin/ninja") +
                                                              " -v -C " + world.path("build")});
}

TEST(BuildNothingBuilt, FindsTheTorchThatAsksForAVersionInPlaceOfABuild) {
    const JitWorld world;
    const std::string file =
        world.text("venv/lib/python3.11/site-packages/torch/utils/cpp_extension.py",
                   "    command = ['ninja', '--version']\n");
    const auto finding = world.finding();
    ASSERT_TRUE(finding);
    EXPECT_EQ(finding->evidence["patched_file"], file);
    EXPECT_EQ(commands_of(*finding).front(),
              "sed -i \"s/'ninja', '--version'/'ninja', '-v'/\" " + file);
}

TEST(BuildNothingBuilt, FindsANinjaThatIsAScript) {
    const JitWorld world;
    testing::program(world, "venv/bin/ninja");
    const auto finding = world.finding();
    ASSERT_TRUE(finding);
    EXPECT_TRUE(holds(commands_of(*finding).front(), "rm " + world.path("venv/bin/ninja")));
}

TEST(BuildNothingBuilt, IsSilentWhereSomethingRanInTheDirectory) {
    JitWorld world;
    BuildStep step = testing::ran(20, 10, "c++ -c a.cpp", 100, 200);
    step.cwd = world.path("build");
    world.facts.build.steps = {step};
    EXPECT_FALSE(world.finding());
    world.facts.build.steps[0].cwd = world.path("elsewhere");
    EXPECT_TRUE(world.finding());
}

TEST(BuildNothingBuilt, IsSilentWhereNinjaFailedOrWasNotCalled) {
    JitWorld world;
    world.ninja().status = 1 << 8;
    EXPECT_FALSE(world.finding());
    world.ninja().status = 0;
    world.ninja().error = ENOENT;
    EXPECT_FALSE(world.finding());
    world.facts.processes[0].asked_programs.clear();
    EXPECT_FALSE(world.finding());
}

TEST(BuildNothingBuilt, IsSilentOfALibraryThatIsThereOrThatNoBuildMakes) {
    const JitWorld world;
    world.text("build/fused.so", "");
    EXPECT_FALSE(world.finding());
    world.remove("build/fused.so");
    world.remove("build/build.ninja");
    EXPECT_FALSE(world.finding());
}

TEST(BuildNothingBuilt, IsSilentOfALibraryThatLacksAnother) {
    JitWorld world;
    world.failure.error =
        "libcudart.so.13: cannot open shared object file: No such file or "
        "directory";
    EXPECT_FALSE(world.finding());
}

}  // namespace
}  // namespace cudiag
