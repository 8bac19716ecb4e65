#include "tests/unit/diagnose/build/facts.h"

namespace cudiag {
namespace {

using testing::commands_of;
using testing::failed;
using testing::first_case;
using testing::holds;
using Opens = std::vector<OpenedFile>;

// ninja > c++ > collect2 > ld, which looked for these files.
Facts link(const ElfWorld& world, const std::string& arguments, const Opens& opens,
           const testing::Environment& environment = {}) {
    Facts facts = testing::under_ninja(failed(20, 10, "c++ -o fused.so", 100, 800), environment);
    facts.build.steps.push_back(failed(30, 20, "/usr/lib/gcc/x/12/collect2", 200, 700));
    BuildStep ld = failed(40, 30, "x86_64-linux-gnu-ld.bfd -o fused.so " + arguments, 300, 600);
    ld.cwd = world.path();
    ld.opens = opens;
    facts.build.steps.push_back(ld);
    return facts;
}

// Both names of a library in a directory, neither of which was there.
Opens misses(const std::string& directory, const std::string& library) {
    return {{directory + "/lib" + library + ".so", false},
            {directory + "/lib" + library + ".a", false}};
}

Opens operator+(Opens a, const Opens& b) {
    a.insert(a.end(), b.begin(), b.end());
    return a;
}

TEST(BuildLinkFailed, MakesTheLinkWhereOnlyTheVersionedFileIsThere) {
    const ElfWorld world;
    const std::string file = world.text("lib/libcudiagtest.so.13", "");
    const Facts facts =
        link(world, "-L " + world.path("lib") + " -lcudiagtest -lc",
             misses(world.path("lib"), "cudiagtest") + misses(world.path("gone"), "cudiagtest"));
    const auto finding = build_link_failed(first_case(facts));
    ASSERT_TRUE(finding);
    EXPECT_EQ(finding->slug, "build-link-failed");
    EXPECT_EQ(finding->title,
              "the linker finds no libcudiagtest.so or libcudiagtest.a for -lcudiagtest in the 2 "
              "directories that it searches; " +
                  file + " is there");
    const auto& evidence = finding->evidence;
    EXPECT_EQ(evidence["library"], "cudiagtest");
    EXPECT_EQ(evidence["present"], std::vector<std::string>{file});
    EXPECT_EQ(evidence["needed_by"], world.path("fused.so"));
    ASSERT_EQ(evidence["searched"].size(), 2U);
    EXPECT_EQ(evidence["searched"][0], (nlohmann::ordered_json{{"dir", world.path("lib")},
                                                               {"why", "-L of the command line"},
                                                               {"result", "absent"}}));
    EXPECT_EQ(evidence["searched"][1], (nlohmann::ordered_json{{"dir", world.path("gone")},
                                                               {"why", "built into the linker"},
                                                               {"result", "no such directory"}}));
    EXPECT_EQ(commands_of(*finding), std::vector<std::string>{"ln -s libcudiagtest.so.13 " +
                                                              world.path("lib/libcudiagtest.so")});
}

TEST(BuildLinkFailed, LeadsTheLinkerToTheDirectoryOfTheToolkitThatHasIt) {
    const ElfWorld world;
    testing::toolkit(world, "13.0");
    const std::string file = world.text("cuda/lib/libcudart.so", "");
    const Facts facts = link(world, "-L" + world.path("cuda/lib64") + " -lcudart",
                             misses(world.path("cuda/lib64"), "cudart"),
                             {{"CUDA_HOME", world.path("cuda")}, {"LIBRARY_PATH", "/other"}});
    const auto finding = build_link_failed(first_case(facts));
    ASSERT_TRUE(finding);
    EXPECT_EQ(finding->evidence["library"], "cudart");
    EXPECT_EQ(finding->evidence["present"].at(0), file);
    EXPECT_EQ(finding->evidence["searched"][0]["result"], "no such directory");
    EXPECT_EQ(commands_of(*finding),
              std::vector<std::string>{"export LIBRARY_PATH=" + world.path("cuda/lib") +
                                       ":\"$LIBRARY_PATH\""});
}

TEST(BuildLinkFailed, TellsAllThatAreMissingAndWhichVariableNamedADirectory) {
    const ElfWorld world;
    const std::string lib = world.path("lib");
    const Facts facts =
        link(world, "-L" + lib + " -lcudiagone -lcudiagtwo -lcudiagone",
             misses(lib, "cudiagone") + misses(lib, "cudiagtwo"), {{"LIBRARY_PATH", lib}});
    const auto finding = build_link_failed(first_case(facts));
    ASSERT_TRUE(finding);
    EXPECT_EQ(finding->evidence["library"], "cudiagone");
    EXPECT_EQ(finding->evidence["also_missing"], std::vector<std::string>{"cudiagtwo"});
    EXPECT_EQ(finding->evidence["searched"][0]["why"], "LIBRARY_PATH");
    EXPECT_TRUE(finding->evidence["present"].empty());
    EXPECT_TRUE(finding->fixes.empty()) << "nobody knows what brings it";
}

TEST(BuildLinkFailed, IsSilentOfALibraryThatALaterDirectoryHad) {
    const ElfWorld world;
    const Facts facts =
        link(world, "-lcudart",
             misses(world.path("a"), "cudart") + Opens{{world.path("b/libcudart.so"), true}});
    EXPECT_FALSE(build_link_failed(first_case(facts)));
}

TEST(BuildLinkFailed, IsSilentWhereTheArchiveWasTaken) {
    const ElfWorld world;
    const Facts facts = link(
        world, "-lcudart_static",
        {{world.path("a/libcudart_static.so"), false}, {world.path("a/libcudart_static.a"), true}});
    EXPECT_FALSE(build_link_failed(first_case(facts)));
}

TEST(BuildLinkFailed, IsSilentOfWhatNoOptionAskedFor) {
    const ElfWorld world;
    const Facts facts =
        link(world, "a.o -lm",
             misses(world.path("a"), "cudart") + Opens{{world.path("a/libm.so"), true}});
    EXPECT_FALSE(build_link_failed(first_case(facts)));
}

TEST(BuildLinkFailed, IsSilentOfAStepThatIsNoLinker) {
    const ElfWorld world;
    Facts facts = link(world, "-lcudiagtest", misses(world.path("a"), "cudiagtest"));
    facts.build.steps.back().exe = "/usr/bin/as";
    EXPECT_FALSE(build_link_failed(first_case(facts)));
}

TEST(BuildLinkFailed, KnowsEveryLinker) {
    const ElfWorld world;
    Facts facts = link(world, "-lcudiagtest", misses(world.path("a"), "cudiagtest"));
    for (const char* exe :
         {"/usr/bin/ld", "/usr/bin/x86_64-linux-gnu-ld.gold", "/usr/bin/gold",
          "/usr/lib/llvm-14/bin/ld.lld", "/usr/bin/ld.lld-14", "/usr/bin/lld", "/usr/bin/mold"}) {
        facts.build.steps.back().exe = exe;
        EXPECT_TRUE(build_link_failed(first_case(facts))) << exe;
    }
}

}  // namespace
}  // namespace cudiag
