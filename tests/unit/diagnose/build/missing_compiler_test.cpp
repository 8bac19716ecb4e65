#include <unistd.h>

#include <cerrno>

#include "tests/unit/diagnose/build/facts.h"

namespace cudiag {
namespace {

using testing::commands_of;
using testing::facts_with;
using testing::failed;
using testing::first_case;
using testing::holds;
using testing::program;

// ninja > sh -c COMMAND, which ended with `status`.
Facts shell(const std::string& command, int status, const testing::Environment& environment) {
    BuildStep sh = failed(20, 10, "sh", 200, 200, status);
    sh.argv = {"sh", "-c", command};
    return testing::under_ninja(sh, environment);
}

// A build.ninja that was opened by this process and has not been built yet.
Facts about_to_build(const ElfWorld& world, const std::string& nvcc,
                     const std::string& edge = "build fused.cuda.o: cuda_compile /src/fused.cu") {
    Facts facts;
    FileNote note;
    note.pid = getpid();
    note.path =
        world.text("build/build.ninja", "ninja_required_version = 1.3\ncxx = c++\nnvcc = " + nvcc +
                                            "\n\n" + edge + "\n");
    note.python = {{"cpp_extension.py", 7, "load"}};
    facts.build.build_files = {note};
    return facts;
}

TEST(BuildMissingCompiler, NamesTheNvccThatAShellDidNotFind) {
    const ElfWorld world;
    const std::string home = world.path("gone");
    const Facts facts =
        shell("cd /project && " + home + "/bin/nvcc -c /src/fused.cu", 127, {{"CUDA_HOME", home}});
    const auto finding = build_missing_compiler(first_case(facts));
    ASSERT_TRUE(finding);
    EXPECT_EQ(finding->slug, "build-missing-compiler");
    EXPECT_EQ(finding->title,
              home + "/bin/nvcc does not exist: CUDA_HOME=" + home + " leads to no toolkit");
    EXPECT_EQ(finding->evidence["program"], "nvcc");
    EXPECT_EQ(finding->evidence["asked"], home + "/bin/nvcc");
    EXPECT_EQ(finding->evidence["state"], "absent");
    EXPECT_EQ(finding->evidence["cuda_home"], home);
    EXPECT_FALSE(finding->fixes.empty());
}

TEST(BuildMissingCompiler, ShowsWhereElseTheProgramIs) {
    const ElfWorld world;
    const std::string nvcc = testing::toolkit(world, "13.0",
                                              "venv/lib/python3.11/site-packages/"
                                              "nvidia/cu13");
    const std::string site = world.path("venv/lib/python3.11/site-packages");
    Facts facts = shell("/opt/cudiag-test-absent/bin/nvcc -c x.cu", 127, {{"PATH", "/nowhere"}});
    facts.build.steps[0].argv.push_back("-I" + site + "/torch/include");
    const auto finding = build_missing_compiler(first_case(facts));
    ASSERT_TRUE(finding);
    const auto copies = finding->evidence["copies"].get<std::vector<std::string>>();
    EXPECT_NE(std::find(copies.begin(), copies.end(), nvcc), copies.end());
}

TEST(BuildMissingCompiler, FindsTheFirstProgramOfACommandLineThatIsInNoDirectoryOfPath) {
    const ElfWorld world;
    program(world, "bin/mkdir");
    const std::string path = world.path("bin");
    const Facts facts =
        shell("mkdir -p x; A=1 ccache c++ -c 'a b.cpp' && rm x", 127, {{"PATH", path}});
    const auto finding = build_missing_compiler(first_case(facts));
    ASSERT_TRUE(finding);
    EXPECT_EQ(finding->title, "ccache is in no directory of PATH");
    EXPECT_EQ(finding->evidence["path"], std::vector<std::string>{path});
    EXPECT_EQ(finding->evidence["program"], "ccache");
}

TEST(BuildMissingCompiler, TellsAFileThatDoesNotRunFromOneThatIsAbsent) {
    const ElfWorld world;
    const std::string nvcc = world.text("cuda/bin/nvcc", "no program");
    const Facts facts = shell(nvcc + " -c x.cu", 126, {{"PATH", world.path("bin")}});
    const auto finding = build_missing_compiler(first_case(facts));
    ASSERT_TRUE(finding);
    EXPECT_EQ(finding->title, "nvcc is there but does not run: " + nvcc);
    EXPECT_EQ(finding->evidence["state"], "broken");
    EXPECT_EQ(commands_of(*finding), std::vector<std::string>{nvcc + " --version"});
}

TEST(BuildMissingCompiler, NamesTheHostCompilerThatNvccCouldNotStart) {
    Facts facts = testing::under_ninja(failed(20, 10, "/opt/cuda/bin/nvcc -c x.cu", 100, 200),
                                       {{"PATH", "/nowhere"}});
    AskedProgram gcc;
    gcc.pid = 21;
    gcc.parent = 20;
    gcc.path = "gcc";
    gcc.error = ENOENT;
    facts.build.asked_programs = {gcc};
    const auto finding = build_missing_compiler(first_case(facts));
    ASSERT_TRUE(finding);
    EXPECT_EQ(finding->evidence["program"], "gcc");
    EXPECT_EQ(finding->evidence["state"], "absent");
    EXPECT_TRUE(testing::proposes(*finding, "apt-get install gcc g++"));
}

TEST(BuildMissingCompiler, NamesTheCompilerThatCcacheCouldNotBecome) {
    const ElfWorld world;
    Facts facts = testing::under_ninja(failed(20, 10, "ccache /opt/gone/nvcc -c x.cu", 100, 200));
    AskedProgram nvcc;
    nvcc.pid = 20;
    nvcc.parent = 10;
    nvcc.path = world.path("gone/nvcc");
    nvcc.error = ENOENT;
    facts.build.asked_programs = {nvcc};
    const auto finding = build_missing_compiler(first_case(facts));
    ASSERT_TRUE(finding);
    EXPECT_EQ(finding->evidence["asked"], world.path("gone/nvcc"));
    EXPECT_EQ(finding->evidence["state"], "absent");
    world.text("gone/nvcc", "#!/no/such/interpreter\n");
    EXPECT_EQ(build_missing_compiler(first_case(facts))->evidence["state"], "broken")
        << "the file is there";
}

TEST(BuildMissingCompiler, IsSilentWhereAProgramWasThereAndFoundNoRoom) {
    Facts facts = testing::under_ninja(failed(20, 10, "/opt/cuda/bin/nvcc -c x.cu", 100, 200));
    AskedProgram gcc;
    gcc.pid = 21;
    gcc.parent = 20;
    gcc.path = "gcc";
    gcc.error = EAGAIN;
    facts.build.asked_programs = {gcc};
    EXPECT_FALSE(build_missing_compiler(first_case(facts)));
    facts.build.asked_programs[0].error = ENOMEM;
    EXPECT_FALSE(build_missing_compiler(first_case(facts)));
}

TEST(BuildMissingCompiler, IsSilentOfProgramsThatSomeoneElseDidNotFind) {
    Facts facts = testing::under_ninja(failed(20, 10, "/opt/cuda/bin/nvcc -c x.cu", 100, 200));
    AskedProgram other;
    other.pid = 31;
    other.parent = 30;
    other.path = "gcc";
    other.error = ENOENT;
    AskedProgram ended = other;  // its own, which was started
    ended.parent = 20;
    ended.error = 0;
    ended.status = 1 << 8;
    facts.build.asked_programs = {other, ended};
    EXPECT_FALSE(build_missing_compiler(first_case(facts)));
}

TEST(BuildMissingCompiler, IsSilentWhereEveryProgramOfTheShellIsThere) {
    const ElfWorld world;
    const std::string nvcc = testing::toolkit(world, "13.0");
    program(world, "bin/c++");
    const testing::Environment path{{"PATH", world.path("bin")}};
    const Facts facts = shell("if c++ -c a.cpp; then " + nvcc + " x.cu; fi", 127, path);
    EXPECT_FALSE(build_missing_compiler(first_case(facts)));
}

TEST(BuildMissingCompiler, IsSilentWhereTheShellFailedOtherwise) {
    const Facts facts = shell("/opt/cudiag-test-absent/bin/nvcc x.cu", 1, {{"PATH", "/nowhere"}});
    EXPECT_FALSE(build_missing_compiler(first_case(facts)));
}

TEST(BuildMissingCompilerAhead, NamesTheNvccThatABuildFileIsGoingToCall) {
    const ElfWorld world;
    const Facts facts = about_to_build(world, world.path("gone/bin/nvcc"));
    const auto finding = build_missing_compiler_ahead(facts);
    ASSERT_TRUE(finding);
    EXPECT_EQ(finding->slug, "build-missing-compiler");
    EXPECT_EQ(finding->evidence["asked"], world.path("gone/bin/nvcc"));
    EXPECT_EQ(finding->evidence["build_file"], world.path("build/build.ninja"));
    ASSERT_EQ(finding->python.size(), 1U);
    EXPECT_EQ(finding->python[0].function, "load");
}

TEST(BuildMissingCompilerAhead, LooksBehindCcache) {
    const ElfWorld world;
    const std::string nvcc = testing::toolkit(world, "13.0");
    EXPECT_FALSE(build_missing_compiler_ahead(about_to_build(world, "ccache " + nvcc)));
    EXPECT_FALSE(build_missing_compiler_ahead(about_to_build(world, "/usr/bin/ccache " + nvcc)));
    const auto finding =
        build_missing_compiler_ahead(about_to_build(world, "ccache " + world.path("gone/nvcc")));
    ASSERT_TRUE(finding);
    EXPECT_EQ(finding->evidence["asked"], world.path("gone/nvcc"));
}

TEST(BuildMissingCompilerAhead, ReadsWhatNinjaEscapes) {
    const ElfWorld world;
    const std::string nvcc = program(world, "cu$da/bin/nvcc");
    const auto written = nvcc.find('$');
    std::string escaped = nvcc;
    escaped.insert(written, "$");
    EXPECT_FALSE(build_missing_compiler_ahead(about_to_build(world, escaped)));
}

TEST(BuildMissingCompilerAhead, IsSilentWhereNvccIsThereOrSearchedForInPath) {
    const ElfWorld world;
    EXPECT_FALSE(
        build_missing_compiler_ahead(about_to_build(world, testing::toolkit(world, "13.0"))));
    EXPECT_FALSE(build_missing_compiler_ahead(about_to_build(world, "nvcc")));
}

TEST(BuildMissingCompilerAhead, IsSilentWhereNothingIsCompiledWithNvcc) {
    const ElfWorld world;
    EXPECT_FALSE(build_missing_compiler_ahead(
        about_to_build(world, world.path("gone/bin/nvcc"), "build main.o: compile /src/main.cpp")));
}

TEST(BuildMissingCompilerAhead, IsSilentWhereTheBuildFileIsGone) {
    const ElfWorld world;
    const Facts facts = about_to_build(world, world.path("gone/bin/nvcc"));
    world.remove("build/build.ninja");
    EXPECT_FALSE(build_missing_compiler_ahead(facts));
}

}  // namespace
}  // namespace cudiag
