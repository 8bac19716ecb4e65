// Each rule of the search in a world made for it; ld.so itself is asked about the same world
// wherever it can be.
#include "diagnose/loader/search.h"

#include <gtest/gtest.h>

#include "elf_world.h"
#include "ld_debug_trace.h"

namespace cudiag {
namespace {

void expect_ld_so_agrees(const LoadState& state, const std::string& file) {
    EXPECT_EQ(
        first_difference(trace_file(state, file), model_trace(resolve_program(state, file, {}))),
        "");
}

const SearchStep* matched_step(const Lookup& lookup) {
    for (const SearchStep& step : lookup.steps) {
        if (step.matched) {
            return &step;
        }
    }
    return nullptr;
}

std::string found(const Resolution& resolution, const std::string& name) {
    const Lookup* lookup = resolution.lookup_of(name);
    return lookup != nullptr ? lookup->found : "(never looked for)";
}

// top.so needs mid.so needs leaf.so; leaf.so lies in other/.
void make_chain(const ElfWorld& world, const std::string& top_path,
                const std::string& mid_path = "") {
    world.library("other/leaf.so");
    world.library("mid.so", {{"other/leaf.so"}, mid_path});
    world.library("top.so", {{"mid.so"}, top_path});
}

}  // namespace

TEST(LoaderSearch, RpathOfTheLoaderIsInheritedThroughNeeded) {
    const ElfWorld world;
    make_chain(world, "=" + world.path() + ":" + world.path("other"));
    const Resolution resolution = resolve_dlopen(world.state(), world.path("top.so"), "");
    EXPECT_EQ(found(resolution, "leaf.so"), world.path("other/leaf.so"));
    const SearchStep* step = matched_step(*resolution.lookup_of("leaf.so"));
    ASSERT_NE(step, nullptr);
    EXPECT_EQ(step->rule, Rule::rpath);
    EXPECT_EQ(step->owner, world.path("top.so"));
    EXPECT_EQ(why(*step), "DT_RPATH of " + world.path("top.so"));
    expect_ld_so_agrees(world.state(), world.path("top.so"));
}

TEST(LoaderSearch, RunpathIsNotInherited) {
    const ElfWorld world;
    make_chain(world, world.path() + ":" + world.path("other"));
    const Resolution resolution = resolve_dlopen(world.state(), world.path("top.so"), "");
    EXPECT_EQ(found(resolution, "mid.so"), world.path("mid.so"));
    EXPECT_EQ(found(resolution, "leaf.so"), "");
    const Lookup* missing = resolution.first_missing();
    ASSERT_NE(missing, nullptr);
    EXPECT_EQ(missing->name, "leaf.so");
    EXPECT_EQ(missing->requested_by, world.path("mid.so"));
    EXPECT_EQ(missing->chain,
              (std::vector<std::string>{world.path("top.so"), world.path("mid.so")}));
    EXPECT_EQ(missing->error, "cannot open shared object file: No such file or directory");
    expect_ld_so_agrees(world.state(), world.path("top.so"));
}

TEST(LoaderSearch, RunpathOfALibraryMakesItBlindToInheritedRpath) {
    const ElfWorld world;
    make_chain(world, "=" + world.path() + ":" + world.path("other"), "/nonexistent");
    EXPECT_EQ(found(resolve_dlopen(world.state(), world.path("top.so"), ""), "leaf.so"), "");
    expect_ld_so_agrees(world.state(), world.path("top.so"));
}

TEST(LoaderSearch, LdLibraryPathBeatsRunpathButNotRpath) {
    const ElfWorld world;
    world.library("a/leaf.so");
    world.library("b/leaf.so");
    world.library("new.so", {{"a/leaf.so"}, world.path("a")});
    world.library("old.so", {{"a/leaf.so"}, "=" + world.path("a")});
    LoadState state = world.state();
    state.ld_library_path = world.path("b");
    EXPECT_EQ(found(resolve_dlopen(state, world.path("new.so"), ""), "leaf.so"),
              world.path("b/leaf.so"));
    EXPECT_EQ(found(resolve_dlopen(state, world.path("old.so"), ""), "leaf.so"),
              world.path("a/leaf.so"));
    expect_ld_so_agrees(state, world.path("new.so"));
    expect_ld_so_agrees(state, world.path("old.so"));
}

TEST(LoaderSearch, LdLibraryPathIsSplitAtColonsAndSemicolonsAndExpandsOrigin) {
    const ElfWorld world;
    world.library("a/one.so");
    world.library("b/two.so");
    world.library("top.so", {{"a/one.so", "b/two.so"}});
    LoadState state = world.state();
    state.ld_library_path = "/nonexistent;${ORIGIN}/a:$ORIGIN/b/";
    const Resolution resolution = resolve_program(state, world.path("top.so"), {});
    EXPECT_EQ(found(resolution, "one.so"), world.path("a/one.so"));
    EXPECT_EQ(found(resolution, "two.so"), world.path("b/two.so"));
    EXPECT_EQ(matched_step(*resolution.lookup_of("two.so"))->raw, "$ORIGIN/b/");
    expect_ld_so_agrees(state, world.path("top.so"));
}

TEST(LoaderSearch, AnEmptyElementIsTheCurrentDirectory) {
    const ElfWorld world;
    world.library("leaf.so");
    world.library("sub/top.so", {{"leaf.so"}});
    LoadState state = world.state();
    state.ld_library_path = ":/nonexistent";
    EXPECT_EQ(found(resolve_program(state, world.path("sub/top.so"), {}), "leaf.so"), "leaf.so");
    expect_ld_so_agrees(state, world.path("sub/top.so"));
    state.ld_library_path = "sub/..:";
    expect_ld_so_agrees(state, world.path("sub/top.so"));
}

TEST(LoaderSearch, OriginOfALibraryIsNotResolvedThroughLinks) {
    const ElfWorld world;
    world.library("real/leaf.so");
    world.library("real/top.so", {{"real/leaf.so"}, "$ORIGIN"});
    world.library("links/leaf.so");
    world.link("links/top.so", world.path("real/top.so"));
    EXPECT_EQ(found(resolve_dlopen(world.state(), world.path("links/top.so"), ""), "leaf.so"),
              world.path("links/leaf.so"));
    expect_ld_so_agrees(world.state(), world.path("links/top.so"));
}

TEST(LoaderSearch, OriginOfAProgramIsItsTruePath) {
    const ElfWorld world;
    world.library("real/leaf.so");
    world.program("real/top", {{"real/leaf.so"}, "$ORIGIN"});
    world.link("links/top", world.path("real/top"));
    EXPECT_EQ(found(resolve_program(world.state(), world.path("links/top"), {}), "leaf.so"),
              world.path("real/leaf.so"));
}

TEST(LoaderSearch, AMissingDirectoryIsTriedOnceInAProcess) {
    const ElfWorld world;
    world.library("other/one.so");
    world.library("other/two.so");
    world.library("top.so", {{"other/one.so", "other/two.so"},
                             world.path("nowhere") + ":" + world.path("other")});
    const Resolution resolution = resolve_dlopen(world.state(), world.path("top.so"), "");
    const SearchStep& first = resolution.lookup_of("one.so")->steps.front();
    const SearchStep& second = resolution.lookup_of("two.so")->steps.front();
    EXPECT_EQ(first.result, "no such directory");
    EXPECT_FALSE(first.tried.empty());
    EXPECT_EQ(second.dir, world.path("nowhere"));
    EXPECT_TRUE(second.tried.empty());
    expect_ld_so_agrees(world.state(), world.path("top.so"));
}

TEST(LoaderSearch, HwcapsSubdirectoriesComeFirst) {
    const ElfWorld world;
    const LoadState state = world.state();
    if (state.config.hwcaps.size() < 2) {
        GTEST_SKIP() << "this loader knows no subdirectories";
    }
    const std::string& worst = state.config.hwcaps[state.config.hwcaps.size() - 2];
    const std::string& best = state.config.hwcaps.front();
    world.library("lib/leaf.so");
    world.library("lib/" + worst + "/leaf.so");
    world.library("top.so", {{"lib/leaf.so"}, world.path("lib")});
    EXPECT_EQ(found(resolve_dlopen(state, world.path("top.so"), ""), "leaf.so"),
              world.path("lib/" + worst + "/leaf.so"));
    expect_ld_so_agrees(state, world.path("top.so"));
    world.library("lib/" + best + "/leaf.so");
    EXPECT_EQ(found(resolve_dlopen(state, world.path("top.so"), ""), "leaf.so"),
              world.path("lib/" + best + "/leaf.so"));
    expect_ld_so_agrees(state, world.path("top.so"));
}

TEST(LoaderSearch, ATextFileEndsTheSearchWhereAnotherMachinesLibraryDoesNot) {
    const ElfWorld world;
    world.library("good/leaf.so");
    world.library("top.so", {{"good/leaf.so"}, world.path("bad") + ":" + world.path("good")});
    const std::string bad = world.library("bad/leaf.so");
    std::fstream file(bad, std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(18);  // e_machine
    file.write("\x15\x00", 2);
    file.close();
    Resolution resolution = resolve_dlopen(world.state(), world.path("top.so"), "");
    EXPECT_EQ(found(resolution, "leaf.so"), world.path("good/leaf.so"));
    EXPECT_EQ(resolution.lookup_of("leaf.so")->steps.front().result,
              "wrong machine: PowerPC64, 64-bit");
    expect_ld_so_agrees(world.state(), world.path("top.so"));

    world.text(
        "bad/leaf.so",
        "/* GNU ld script */\nGROUP ( /lib/leaf.so.1 AS_NEEDED ( /lib/other.so ) )\n# padding ");
    resolution = resolve_dlopen(world.state(), world.path("top.so"), "");
    EXPECT_EQ(found(resolution, "leaf.so"), "");
    EXPECT_EQ(resolution.first_missing()->error, "invalid ELF header");
    EXPECT_EQ(resolution.lookup_of("leaf.so")->steps.back().result,
              "not ELF: a linker script that begins with '/* GNU ld script */'");
    expect_ld_so_agrees(world.state(), world.path("top.so"));

    world.text("bad/leaf.so", "short");
    resolution = resolve_dlopen(world.state(), world.path("top.so"), "");
    EXPECT_EQ(resolution.first_missing()->error, "file too short");
    expect_ld_so_agrees(world.state(), world.path("top.so"));
}

TEST(LoaderSearch, AFileOfTheOtherClassIsPassedOverAndNamedInTheError) {
    const ElfWorld world;
    world.library("bad/leaf.so");
    world.library("top.so", {{"bad/leaf.so"}, world.path("bad")});
    std::fstream file(world.path("bad/leaf.so"), std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(4);  // EI_CLASS
    file.write("\x01", 1);
    file.close();
    const Resolution resolution = resolve_dlopen(world.state(), world.path("top.so"), "");
    EXPECT_EQ(resolution.lookup_of("leaf.so")->steps.front().result, "wrong ELF class");
    EXPECT_EQ(resolution.first_missing()->error, "wrong ELF class: ELFCLASS32");
    expect_ld_so_agrees(world.state(), world.path("top.so"));
}

TEST(LoaderSearch, AnUnreadableFileIsPassedOver) {
    const ElfWorld world;
    if (geteuid() == 0) {
        GTEST_SKIP() << "root reads everything";
    }
    world.library("bad/leaf.so");
    world.library("top.so", {{"bad/leaf.so"}, world.path("bad")});
    std::filesystem::permissions(world.path("bad/leaf.so"), std::filesystem::perms::none);
    const Resolution resolution = resolve_dlopen(world.state(), world.path("top.so"), "");
    EXPECT_EQ(resolution.lookup_of("leaf.so")->steps.front().result, "permission denied");
    expect_ld_so_agrees(world.state(), world.path("top.so"));
}

TEST(LoaderSearch, ADirectoryThatIsAFileEndsItsListInOldLoadersOnly) {
    const ElfWorld world;
    world.library("good/leaf.so");
    world.text("file", "no directory");
    world.library("top.so",
                  {{"good/leaf.so"}, "file/x:" + world.path("file") + "/y:" + world.path("good")});
    expect_ld_so_agrees(world.state(), world.path("top.so"));
}

TEST(LoaderSearch, ALibraryWithNodeflibIsSentToNoSystemDirectory) {
    const ElfWorld world;
    world.library("top.so", {{}, "", "", "", "-Wl,-z,nodefaultlib -Wl,--no-as-needed -lm"});
    const Resolution resolution = resolve_dlopen(world.state(), world.path("top.so"), "");
    ASSERT_NE(resolution.lookup_of("libm.so.6"), nullptr);
    EXPECT_EQ(found(resolution, "libm.so.6"), "");
    for (const SearchStep& step : resolution.lookup_of("libm.so.6")->steps) {
        EXPECT_NE(step.rule, Rule::system_dir);
    }
    expect_ld_so_agrees(world.state(), world.path("top.so"));
}

TEST(LoaderSearch, DependenciesAreMappedBreadthFirst) {
    const ElfWorld world;
    world.library("deep.so");
    world.library("one.so", {{"deep.so"}});
    world.library("two.so");
    world.library("top.so", {{"one.so", "two.so"}, "=" + world.path()});
    std::vector<std::string> names;
    for (const Lookup& lookup : resolve_dlopen(world.state(), world.path("top.so"), "").lookups) {
        names.push_back(lookup.name);
    }
    EXPECT_EQ(names,
              (std::vector<std::string>{world.path("top.so"), "one.so", "two.so", "deep.so"}));
    expect_ld_so_agrees(world.state(), world.path("top.so"));
}

TEST(LoaderSearch, TheSameFileUnderAnotherNameIsNotLoadedTwice) {
    const ElfWorld world;
    world.library("leaf.so", {{}, "", "-"});
    world.link("alias.so", "leaf.so");
    world.library("top.so", {{},
                             "",
                             "",
                             "",
                             "-L" + world.path() + " -l:leaf.so -l:alias.so '-Wl,-rpath," +
                                 world.path() + "'"});
    const Resolution resolution = resolve_dlopen(world.state(), world.path("top.so"), "");
    ASSERT_EQ(resolution.lookups.size(), 3U);
    EXPECT_TRUE(resolution.lookups[2].already_loaded);
    EXPECT_EQ(resolution.lookups[2].found, resolution.lookups[1].found);
    expect_ld_so_agrees(world.state(), world.path("top.so"));
}

TEST(LoaderSearch, AVersionThatTheProviderLacksIsAClash) {
    const ElfWorld world;
    world.text("v1.map", "V1 { global: f; };");
    world.text("v2.map", "V1 { global: f; }; V2 { global: g; };");
    const std::string both = "int f(void){return 1;} int g(void){return 2;}";
    world.library("new/leaf.so",
                  {{}, "", "", both, "-Wl,--version-script," + world.path("v2.map")});
    world.library(
        "top.so",
        {{"new/leaf.so"}, "", "", "int f(void); int g(void); int h(void){return f()+g();}"});
    world.library(
        "old/leaf.so",
        {{}, "", "", "int f(void){return 1;}", "-Wl,--version-script," + world.path("v1.map")});
    LoadState state = world.state();
    state.ld_library_path = world.path("old");
    Resolution resolution = resolve_dlopen(state, world.path("top.so"), "");
    ASSERT_EQ(resolution.clashes.size(), 1U);
    EXPECT_EQ(resolution.clashes[0].version, "V2");
    EXPECT_EQ(resolution.clashes[0].provider, world.path("old/leaf.so"));
    EXPECT_EQ(resolution.clashes[0].needed_by, world.path("top.so"));
    EXPECT_FALSE(resolution.clashes[0].provider_has_no_versions);
    state.ld_library_path = world.path("new");
    EXPECT_TRUE(resolve_dlopen(state, world.path("top.so"), "").clashes.empty());

    world.library("none/leaf.so", {{}, "", "", both});
    state.ld_library_path = world.path("none");
    resolution = resolve_dlopen(state, world.path("top.so"), "");
    ASSERT_EQ(resolution.clashes.size(), 2U);
    EXPECT_TRUE(resolution.clashes[0].provider_has_no_versions);
}

TEST(LoaderSearch, APreloadThatIsMissingIsIgnoredAndALoadedOneComesFirst) {
    const ElfWorld world;
    world.library("a/leaf.so");
    world.library("b/leaf.so");
    world.library("top.so", {{"a/leaf.so"}, world.path("a")});
    const std::vector<std::string> preloads{world.path("gone.so"), world.path("b/leaf.so")};
    const Resolution resolution = resolve_program(world.state(), world.path("top.so"), preloads);
    EXPECT_EQ(resolution.first_missing(), nullptr);
    EXPECT_TRUE(resolution.lookup_of("leaf.so")->already_loaded);
    EXPECT_EQ(found(resolution, "leaf.so"), world.path("b/leaf.so"));
}

TEST(LoaderSearch, ALoopOfNeedsEnds) {
    const ElfWorld world;
    world.library("a.so");
    world.library("b.so", {{"a.so"}, "$ORIGIN"});
    world.library("a.so", {{"b.so"}, "$ORIGIN"});
    EXPECT_EQ(resolve_dlopen(world.state(), world.path("a.so"), "").first_missing(), nullptr);
    expect_ld_so_agrees(world.state(), world.path("a.so"));
}

TEST(LoaderSearch, ANeededPathMayHoldTokens) {
    const ElfWorld world;
    world.library("sub/leaf.so", {{}, "", "$ORIGIN/sub/leaf.so"});
    world.library("top.so", {{"sub/leaf.so"}});
    EXPECT_EQ(resolve_dlopen(world.state(), world.path("top.so"), "").lookups.at(1).found,
              world.path("sub/leaf.so"));
    expect_ld_so_agrees(world.state(), world.path("top.so"));
}

}  // namespace cudiag
