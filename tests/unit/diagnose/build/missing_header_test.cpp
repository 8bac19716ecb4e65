#include "tests/unit/diagnose/build/facts.h"

namespace cudiag {
namespace {

using testing::failed;
using testing::first_case;
using testing::holds;
using Opens = std::vector<OpenedFile>;

// A compile of `source` with two -I directories, a and b, which opened these files at its end.
Facts compile(const ElfWorld& world, const std::string& source, const Opens& opens,
              const testing::Environment& environment = {}) {
    std::filesystem::create_directories(world.path("a"));
    BuildStep step = failed(
        20, 10, "cc1plus -quiet -I " + world.path("a") + " -I" + world.path("b") + " " + source,
        100, 200);
    step.cwd = world.path();
    step.opens = opens;
    return testing::under_ninja(step, environment);
}

TEST(BuildMissingHeader, TellsWhoWantsItAndEveryDirectoryThatWasSearched) {
    const ElfWorld world;
    const std::string source = world.text("csrc/x.cpp", "// x\n  #  include <cusparse.h>\n");
    const Facts facts = compile(world, source,
                                {{source, true},
                                 {world.path("a/cusparse.h"), false},
                                 {world.path("b/cusparse.h"), false},
                                 {world.path("cpath/cusparse.h"), false},
                                 {world.path("usr/include/cusparse.h"), false},
                                 {source, true}},
                                {{"CPATH", world.path("cpath")}});
    const auto finding = build_missing_header(first_case(facts));
    ASSERT_TRUE(finding);
    EXPECT_EQ(finding->slug, "build-missing-header");
    EXPECT_EQ(finding->title,
              "cusparse.h is in none of the 4 directories searched: it belongs to cuSPARSE, sparse "
              "linear algebra");
    const auto& evidence = finding->evidence;
    EXPECT_EQ(evidence["header"], "cusparse.h");
    EXPECT_EQ(evidence["included_by"], source + ":2");
    EXPECT_EQ(evidence["source"], source);
    EXPECT_EQ(evidence["compiler"], "/usr/bin/cc1plus");
    ASSERT_EQ(evidence["searched"].size(), 4U);
    EXPECT_EQ(evidence["searched"][0], (nlohmann::ordered_json{{"dir", world.path("a")},
                                                               {"why", "-I of the command line"},
                                                               {"result", "absent"}}));
    EXPECT_EQ(evidence["searched"][1]["result"], "no such directory");
    EXPECT_EQ(evidence["searched"][1]["why"], "-I of the command line");
    EXPECT_EQ(evidence["searched"][2]["why"], "CPATH");
    EXPECT_EQ(evidence["searched"][3]["why"], "built into the compiler");
    EXPECT_FALSE(evidence["packages"].empty());
}

TEST(BuildMissingHeader, NamesTheToolkitThatLacksIt) {
    const ElfWorld world;
    testing::toolkit(world, "13.0");
    const std::string source = world.text("csrc/x.cpp", "#include \"curand_kernel.h\"\n");
    const Facts facts = compile(world, source,
                                {{source, true},
                                 {world.path("csrc/curand_kernel.h"), false},
                                 {world.path("cuda/include/curand_kernel.h"), false}},
                                {{"CUDA_HOME", world.path("cuda")}});
    const auto finding = build_missing_header(first_case(facts));
    ASSERT_TRUE(finding);
    EXPECT_TRUE(holds(finding->title, ": the CUDA 13.0 toolkit at " + world.path("cuda") +
                                          " has nvcc but not the headers of cuRAND"));
    EXPECT_EQ(finding->evidence["cuda_home"], world.path("cuda"));
    EXPECT_EQ(finding->evidence["cuda_release"], "13.0");
    EXPECT_EQ(finding->evidence["searched"][0]["why"], "directory of the including file");
    EXPECT_TRUE(testing::proposes(*finding, "apt-get install libcurand-dev-13-0"));
}

TEST(BuildMissingHeader, ForeseesWhatTheSameIncluderLacksNext) {
    const ElfWorld world;
    world.text("a/cublas_v2.h", "");
    const std::string includer =
        world.text("torch/include/ATen/cuda/CUDAContextLight.h", "#include <cusparse.h>\n");
    const std::string source = world.text("csrc/x.cpp", "#include <ATen/cuda/CUDAContext.h>\n");
    const Facts facts = compile(
        world, source,
        {{source, true}, {includer, true}, {world.path("a/cusparse.h"), false}, {includer, true}});
    const auto finding = build_missing_header(first_case(facts));
    ASSERT_TRUE(finding);
    EXPECT_EQ(finding->evidence["included_by"], includer + ":1");
    const auto also = finding->evidence["also_missing"].get<std::vector<std::string>>();
    EXPECT_NE(std::find(also.begin(), also.end(), "cusolverDn.h"), also.end());
    EXPECT_EQ(std::find(also.begin(), also.end(), "cublas_v2.h"), also.end())
        << "it is in a directory that is searched";
}

TEST(BuildMissingHeader, KeepsTheDirectoryThatIsPartOfTheName) {
    const ElfWorld world;
    const std::string source = world.text("csrc/x.cpp", "#include <thrust/complex.h>\n");
    const Facts facts = compile(world, source,
                                {{source, true},
                                 {world.path("a/thrust/complex.h"), false},
                                 {world.path("b/thrust/complex.h"), false}});
    const auto finding = build_missing_header(first_case(facts));
    ASSERT_TRUE(finding);
    EXPECT_EQ(finding->evidence["header"], "thrust/complex.h");
    ASSERT_EQ(finding->evidence["searched"].size(), 2U);
    EXPECT_EQ(finding->evidence["searched"][0]["dir"], world.path("a"));
}

TEST(BuildMissingHeader, KnowsTheHeadersOfThePython) {
    const ElfWorld world;
    const std::string source = world.text("csrc/x.c", "#include <Python.h>\n");
    const Facts facts =
        compile(world, source, {{source, true}, {world.path("usr/include/Python.h"), false}});
    const auto finding = build_missing_header(first_case(facts));
    ASSERT_TRUE(finding);
    EXPECT_EQ(finding->evidence["header"], "Python.h");
    EXPECT_FALSE(testing::proposes(*finding, "cuda"));
}

TEST(BuildMissingHeader, MayBeNamedByTheCommandLine) {
    const ElfWorld world;
    const std::string source = world.text("csrc/x.cpp", "int x;\n");
    Facts facts = compile(world, source, {{world.path("a/cuda_runtime.h"), false}});
    facts.build.steps[1].argv.insert(facts.build.steps[1].argv.end(),
                                     {"-include", "cuda_runtime.h"});
    const auto finding = build_missing_header(first_case(facts));
    ASSERT_TRUE(finding);
    EXPECT_EQ(finding->evidence["included_by"], "the command line (-include)");
}

TEST(BuildMissingHeader, IsSilentOfOneThatALaterDirectoryHad) {
    const ElfWorld world;
    const std::string source = world.text("csrc/x.cpp", "#include <cusparse.h>\n");
    const std::string header = world.text("b/cusparse.h", "");
    const Facts facts = compile(
        world, source, {{source, true}, {world.path("a/cusparse.h"), false}, {header, true}});
    EXPECT_FALSE(build_missing_header(first_case(facts)));
}

TEST(BuildMissingHeader, IsSilentWhereTheCompilerWentOnToOtherFiles) {
    const ElfWorld world;
    const std::string source =
        world.text("csrc/x.cpp", "#if __has_include(<cusparse.h>)\n#endif\n#include <stdio.h>\n");
    const Facts facts = compile(world, source,
                                {{source, true},
                                 {world.path("a/cusparse.h"), false},
                                 {world.path("b/cusparse.h"), false},
                                 {world.text("usr/include/stdio.h", ""), true}});
    EXPECT_FALSE(build_missing_header(first_case(facts)));
}

TEST(BuildMissingHeader, IsSilentOfOneThatTheSourceOnlyAsksAbout) {
    const ElfWorld world;
    const std::string source = world.text(
        "csrc/x.cpp", "#if __has_include(<cusparse.h>)\n#include <cusparse.h>\n#endif\n");
    const Facts facts =
        compile(world, source, {{source, true}, {world.path("a/cusparse.h"), false}});
    EXPECT_FALSE(build_missing_header(first_case(facts)));
}

TEST(BuildMissingHeader, LeavesToTheCompilerWhatNobodyKnowsMoreAbout) {
    const ElfWorld world;
    const std::string source = world.text("csrc/x.cpp", "#include \"cudiag_test_unheard_of.h\"\n");
    const Facts facts = compile(
        world, source, {{source, true}, {world.path("csrc/cudiag_test_unheard_of.h"), false}});
    EXPECT_FALSE(build_missing_header(first_case(facts)));
}

TEST(BuildMissingHeader, IsSilentOfWhatCompilersLookForWithoutNeed) {
    const ElfWorld world;
    const std::string source = world.text("csrc/x.cpp", "#include <cusparse.h>\n");
    const Facts facts = compile(world, source,
                                {{source, true},
                                 {world.path("a/cusparse.h.gch"), false},
                                 {"/usr/share/locale/de/LC_MESSAGES/gcc-12.mo", false},
                                 {"/proc/self/absent", false}});
    EXPECT_FALSE(build_missing_header(first_case(facts)));
}

}  // namespace
}  // namespace cudiag
