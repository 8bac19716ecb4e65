// Dry runs in small worlds, and on the real pair of wheels that the idea was made for, where it is
// given:
//   pip install --no-deps -t DIR/old nvidia-cusparse-cu12==12.3.1.170
//   nvidia-nvjitlink-cu12==12.1.105 pip install --no-deps -t DIR/new
//   nvidia-nvjitlink-cu12==12.4.127 CUDIAG_NVJITLINK_PAIR=DIR
#include "diagnose/loader/dry_run.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "elf_world.h"

namespace cudiag {
namespace {

// old/leaf.so exports f@V1, new/leaf.so f@V1 and g@V1; top.so wants both and finds the old one by
// its RUNPATH.
void make_old_and_new(const ElfWorld& world, const std::string& prefix = "") {
    world.text("v.map", "V1 { global: f; g; };");
    const std::string flags = "-Wl,--version-script," + world.path("v.map");
    world.library(prefix + "new/leaf.so",
                  {{}, "", "", "int f(void){return 1;} int g(void){return 2;}", flags});
    world.library(prefix + "pkg/top.so",
                  {{prefix + "new/leaf.so"},
                   "$ORIGIN/../old",
                   "",
                   "int f(void); int g(void); int h(void){return f()+g();}"});
    world.library(prefix + "old/leaf.so", {{}, "", "", "int f(void){return 1;}", flags});
}

Module module(const std::string& path) {
    Module result;
    result.path = path;
    return result;
}

bool mapped(const DryRun& run, const std::string& path) {
    return std::any_of(run.mapped.begin(), run.mapped.end(), [&](const std::string& pair) {
        return pair.substr(pair.find('|') + 1) == path;
    });
}

DryRunChange with_library_path(const std::string& path) {
    DryRunChange change;
    change.ld_library_path = path;
    return change;
}

}  // namespace

TEST(DryRunOfALoad, SaysWhatIsMissing) {
    const ElfWorld world;
    world.library("leaf.so");
    world.library("top.so", {{"leaf.so"}});
    const DryRun run = dry_run(world.state(), world.path("top.so"), {});
    ASSERT_TRUE(run.ran) << run.why;
    EXPECT_EQ(run.missing, std::vector<std::string>{"leaf.so"});
    const DryRun after =
        dry_run(world.state(), world.path("top.so"), with_library_path(world.path()));
    EXPECT_TRUE(after.missing.empty());
    EXPECT_TRUE(mapped(after, world.path("leaf.so")));
    EXPECT_TRUE(cures(run, after));
    EXPECT_FALSE(cures(after, run));
    EXPECT_FALSE(cures(run, run));
}

TEST(DryRunOfALoad, NamesUndefinedSymbolsWithVersionAndFile) {
    const ElfWorld world;
    make_old_and_new(world);
    const DryRun run = dry_run(world.state(), world.path("pkg/top.so"), {});
    EXPECT_EQ(run.undefined, std::vector<std::string>{"g|V1|" + world.path("pkg/top.so")});
    EXPECT_TRUE(run.missing.empty());
    EXPECT_EQ(run.failure, "");
    DryRunChange quick;
    quick.symbols = false;
    EXPECT_TRUE(dry_run(world.state(), world.path("pkg/top.so"), quick).undefined.empty());
}

TEST(DryRunOfALoad, ANewerCopyFirstOnThePathCuresUnlessTheOldOneIsMapped) {
    const ElfWorld world;
    make_old_and_new(world);
    LoadState state = world.state();
    const std::string top = world.path("pkg/top.so");
    DryRunChange change = with_library_path(world.path("new"));
    const DryRun before = dry_run(state, top, {});
    EXPECT_TRUE(cures(before, dry_run(state, top, change)));
    state.modules = {module("/bin/sh"), module(world.path("old/leaf.so"))};
    EXPECT_FALSE(cures(dry_run(state, top, {}), dry_run(state, top, change)));
    change.drop_mapped = {world.path("old/leaf.so")};
    EXPECT_TRUE(cures(dry_run(state, top, {}), dry_run(state, top, change)));
    change.drop_mapped.clear();
    change.keep_mapped = false;
    EXPECT_TRUE(cures(dry_run(state, top, {}), dry_run(state, top, change)));
    change.keep_mapped = true;
    change.preload_first = {world.path("new/leaf.so")};
    EXPECT_TRUE(cures(dry_run(state, top, {}), dry_run(state, top, change)));
}

TEST(DryRunOfALoad, QuotesTheLoaderOnVersionsThatAreNotFound) {
    const ElfWorld world;
    world.text("v1.map", "V1 { global: f; };");
    world.text("v2.map", "V2 { global: f; };");
    world.library(
        "new/leaf.so",
        {{}, "", "", "int f(void){return 1;}", "-Wl,--version-script," + world.path("v2.map")});
    world.library("top.so",
                  {{"new/leaf.so"}, "$ORIGIN/old", "", "int f(void); int h(void){return f();}"});
    world.library(
        "old/leaf.so",
        {{}, "", "", "int f(void){return 1;}", "-Wl,--version-script," + world.path("v1.map")});
    const DryRun run = dry_run(world.state(), world.path("top.so"), {});
    ASSERT_EQ(run.version_errors.size(), 1U);
    EXPECT_EQ(run.version_errors[0], world.path("old/leaf.so") +
                                         ": version `V2' not found (required by " +
                                         world.path("top.so") + ")");
    EXPECT_TRUE(cures(
        run, dry_run(world.state(), world.path("top.so"), with_library_path(world.path("new")))));
}

TEST(DryRunOfALoad, CountsTheProgramsRpathAndItsSymbols) {
    const ElfWorld world;
    world.library("lib/leaf.so");
    world.library(
        "plugin/top.so",
        {{"lib/leaf.so"}, "", "", "int of_program(void); int h(void){return of_program();}"});
    LoadState state = world.state();
    EXPECT_FALSE(dry_run(state, world.path("plugin/top.so"), {}).missing.empty());
    state.executable =
        world.program("bin/main", {{},
                                   "=$ORIGIN/../lib",
                                   "",
                                   "int of_program(void){return 1;} int main(void){return 0;}",
                                   "-rdynamic"});
    const DryRun run = dry_run(state, world.path("plugin/top.so"), {});
    EXPECT_TRUE(run.missing.empty());
    EXPECT_TRUE(run.undefined.empty());
    EXPECT_TRUE(mapped(run, world.path("lib/leaf.so")) ||
                mapped(run, world.path("bin/../lib/leaf.so")));
}

TEST(DryRunOfALoad, BringsModulesWhosePathsHoldSpacesAndColons) {
    const ElfWorld world;
    make_old_and_new(world, "a dir:x/");
    LoadState state = world.state();
    state.executable = "/bin/sh";
    state.modules = {module("/bin/sh"), module(world.path("a dir:x/old/leaf.so"))};
    const std::string top = world.path("a dir:x/pkg/top.so");
    const DryRun before = dry_run(state, top, {});
    EXPECT_EQ(before.undefined, std::vector<std::string>{"g|V1|" + top});
    EXPECT_TRUE(mapped(before, world.path("a dir:x/old/leaf.so")));
    DryRunChange change;
    change.keep_mapped = false;  // $ORIGIN/../old must still be found through the link
    EXPECT_TRUE(dry_run(state, top, change).missing.empty());
}

TEST(DryRunOfALoad, SaysWhichModuleItHadToLeaveOut) {
    const ElfWorld world;
    LoadState state = world.state();
    state.modules = {module("/bin/sh"), module(world.library("od d.so")),
                     module(world.path("gone.so"))};
    const DryRun run = dry_run(state, world.library("top.so"), {});
    EXPECT_TRUE(run.ran);
    EXPECT_NE(run.why.find("od d.so is left out"), std::string::npos) << run.why;
    EXPECT_NE(run.why.find("gone.so is no longer there"), std::string::npos) << run.why;
}

TEST(DryRunOfALoad, BringsMoreModulesThanOneVariableCanName) {
    const ElfWorld world;
    LoadState state = world.state();
    const std::string dir =
        "a_directory_with_a_long_name_such_as_site_packages_have/and_another_one_below_it/";
    state.executable = "/bin/sh";
    state.modules = {module("/bin/sh")};
    state.modules.insert(state.modules.end(), 1500, module(world.library(dir + "leaf.so")));
    const DryRun run = dry_run(state, world.library("top.so"), {});
    EXPECT_TRUE(run.ran) << run.why;
    EXPECT_TRUE(mapped(run, world.path(dir + "leaf.so")));
}

TEST(DryRunOfALoad, RunsNoConstructor) {
    const ElfWorld world;
    world.library("top.so",
                  {{},
                   "",
                   "",
                   "#include <fcntl.h>\n__attribute__((constructor)) void c(void){creat(\"" +
                       world.path("ran") + "\", 0600);}",
                   "-lc"});
    EXPECT_TRUE(dry_run(world.state(), world.path("top.so"), {}).ran);
    LoadState state = world.state();
    state.executable = "/bin/sh";
    EXPECT_TRUE(dry_run(state, world.path("top.so"), {}).ran);
    EXPECT_FALSE(std::filesystem::exists(world.path("ran")));
}

TEST(DryRunOfALoad, GivesTheLoadersWordsForAFileItRejects) {
    const ElfWorld world;
    LoadState state = world.state();
    const std::string text = world.text("text.so", std::string(100, 'x'));
    EXPECT_NE(dry_run(state, text, {}).failure.find("invalid ELF header"), std::string::npos);
    state.executable = "/bin/sh";
    EXPECT_EQ(dry_run(state, text, {}).failure, "invalid ELF header");
    EXPECT_NE(
        dry_run(state, world.path("absent.so"), {}).failure.find("cannot open shared object file"),
        std::string::npos);
}

TEST(DryRunOfALoad, SaysWhyItCouldNotRun) {
    const ElfWorld world;
    LoadState state = world.state();
    state.config.interpreter = world.path("no-loader");
    const DryRun run = dry_run(state, world.library("top.so"), {});
    EXPECT_FALSE(run.ran);
    EXPECT_NE(run.why.find("no-loader could not be started"), std::string::npos) << run.why;
    EXPECT_FALSE(cures(run, run));
}

TEST(DryRunOfALoad, ALoaderThatTakesTooLongIsStopped) {
    const LoaderRun run =
        run_loader({"/bin/sh", "-c", "echo begun; exec sleep 1000"}, {"PATH=/bin:/usr/bin"}, "", 1);
    EXPECT_TRUE(run.started);
    EXPECT_TRUE(run.timed_out);
    EXPECT_EQ(run.out, "begun\n");
}

TEST(ARemedy, ThatGivesOnlySomeOfTheSymbolsIsNone) {
    DryRun before;
    before.ran = true;
    before.undefined = {"f|V|/a.so", "g|V|/a.so", "PyObject_Call||/a.so", "_ZN3c105Error||/b.so",
                        "_ZN3c106Warning||/b.so"};
    DryRun after = before;
    after.undefined = {"PyObject_Call||/a.so", "_ZN3c105Error||/b.so", "_ZN3c106Warning||/b.so"};
    EXPECT_TRUE(cures(before, after));
    after.undefined = {"g|V|/a.so", "PyObject_Call||/a.so"};
    EXPECT_FALSE(cures(before, after));
    after.undefined = {"PyObject_Call||/a.so", "_ZN3c106Warning||/b.so"};
    EXPECT_FALSE(cures(before, after));
    after.undefined = {"PyObject_Call||/a.so", "new_one||/c.so"};
    EXPECT_FALSE(cures(before, after));
}

TEST(DryRunOfALoad, CuresTheRealCusparseOnlyWhenNoOldNvjitlinkIsMapped) {
    const char* pair = std::getenv("CUDIAG_NVJITLINK_PAIR");
    if (pair == nullptr) {
        GTEST_SKIP() << "CUDIAG_NVJITLINK_PAIR is not set; see the head of this file";
    }
    const std::string dir = pair;
    const std::string cusparse = dir + "/old/nvidia/cusparse/lib/libcusparse.so.12";
    LoadState state = ElfWorld().state();
    state.cwd = "/";
    const DryRunChange change = with_library_path(dir + "/new/nvidia/nvjitlink/lib");
    const DryRun before = dry_run(state, cusparse, {}, 60);
    ASSERT_TRUE(before.ran) << before.why;
    EXPECT_NE(std::find(before.undefined.begin(), before.undefined.end(),
                        "__nvJitLinkComplete_12_4|libnvJitLink.so.12|" + cusparse),
              before.undefined.end());
    EXPECT_TRUE(cures(before, dry_run(state, cusparse, change, 60)));
    state.modules = {module("/bin/sh"),
                     module(dir + "/old/nvidia/nvjitlink/lib/libnvJitLink.so.12")};
    EXPECT_FALSE(cures(dry_run(state, cusparse, {}, 60), dry_run(state, cusparse, change, 60)));
}

}  // namespace cudiag
