#include "diagnose/loader/tree.h"

#include <gtest/gtest.h>

#include "elf_world.h"

namespace cudiag {

TEST(NeededTree, ListsEachFilesNeedsOnceWhereTheLoaderMapsIt) {
    const ElfWorld world;
    world.library("leaf.so");
    world.library("one.so", {{"leaf.so"}, "$ORIGIN"});
    world.library("two.so", {{"leaf.so", "one.so"}, "$ORIGIN"});
    const TreeNode root =
        needed_tree(world.state(), world.library("top.so", {{"one.so", "two.so"}, "$ORIGIN"}));
    ASSERT_EQ(root.children.size(), 2U);
    const TreeNode& one = root.children[0];
    const TreeNode& two = root.children[1];
    ASSERT_EQ(one.children.size(), 1U);
    EXPECT_EQ(one.children[0].path, world.path("leaf.so"));
    EXPECT_FALSE(one.children[0].elsewhere);
    ASSERT_EQ(two.children.size(), 2U);
    EXPECT_TRUE(two.children[0].elsewhere);
    EXPECT_TRUE(two.children[1].elsewhere);
    EXPECT_EQ(one.matched()->rule, Rule::runpath);
    EXPECT_TRUE(missing_in(root).empty());
}

TEST(NeededTree, KeepsTheSearchOfWhatIsMissing) {
    const ElfWorld world;
    world.library("other/leaf.so");
    world.library("mid.so", {{"other/leaf.so"}, "$ORIGIN/nowhere"});
    const TreeNode root =
        needed_tree(world.state(), world.library("top.so", {{"mid.so"}, "$ORIGIN"}));
    const std::vector<const TreeNode*> missing = missing_in(root);
    ASSERT_EQ(missing.size(), 1U);
    EXPECT_EQ(missing[0]->name, "leaf.so");
    EXPECT_EQ(missing[0]->error, "cannot open shared object file: No such file or directory");
    EXPECT_EQ(missing[0]->steps.front().dir, world.path("nowhere"));
    EXPECT_EQ(missing[0]->matched(), nullptr);
}

TEST(NeededTree, ShowsTheCopyThatLdLibraryPathShadows) {
    const ElfWorld world;
    world.library("package/leaf.so");
    world.library("package/top.so", {{"package/leaf.so"}, "$ORIGIN"});
    world.library("old/leaf.so");
    LoadState state = world.state();
    state.ld_library_path = world.path("old");
    const TreeNode root = needed_tree(state, world.path("package/top.so"));
    const TreeNode& leaf = root.children.at(0);
    EXPECT_EQ(leaf.path, world.path("old/leaf.so"));
    ASSERT_EQ(leaf.shadowed.size(), 1U);
    EXPECT_EQ(leaf.shadowed[0].path, world.path("package/leaf.so"));
    EXPECT_EQ(leaf.shadowed[0].where, "DT_RUNPATH of " + world.path("package/top.so"));
    EXPECT_TRUE(leaf.shadowed[0].own);
}

TEST(NeededTree, DoesNotCallALinkToTheSameFileShadowed) {
    const ElfWorld world;
    world.library("package/leaf.so");
    world.library("package/top.so", {{"package/leaf.so"}, "$ORIGIN"});
    world.link("links/leaf.so", world.path("package/leaf.so"));
    LoadState state = world.state();
    state.ld_library_path = world.path("links");
    EXPECT_TRUE(needed_tree(state, world.path("package/top.so")).children.at(0).shadowed.empty());
}

TEST(NeededTree, NamesTheClashAtTheFileThatWantsTheVersion) {
    const ElfWorld world;
    world.text("v1.map", "V1 { global: f; };");
    world.text("v2.map", "V1 { }; V2 { global: f; };");
    world.library(
        "new/leaf.so",
        {{}, "", "", "int f(void){return 1;}", "-Wl,--version-script," + world.path("v2.map")});
    world.library("top.so",
                  {{"new/leaf.so"}, "$ORIGIN/old", "", "int f(void); int h(void){return f();}"});
    world.library(
        "old/leaf.so",
        {{}, "", "", "int f(void){return 1;}", "-Wl,--version-script," + world.path("v1.map")});
    const TreeNode root = needed_tree(world.state(), world.path("top.so"));
    const std::vector<const VersionClash*> clashes = fatal_clashes_in(root);
    ASSERT_EQ(clashes.size(), 1U);
    EXPECT_EQ(clashes[0]->version, "V2");
    EXPECT_EQ(root.clashes.size(), 1U);
}

TEST(NeededTree, GivesARootWithAnErrorForAFileThatIsNone) {
    const ElfWorld world;
    const TreeNode absent = needed_tree(world.state(), world.path("absent.so"));
    EXPECT_TRUE(absent.missing());
    EXPECT_EQ(absent.error, "cannot open shared object file: No such file or directory");
    const TreeNode text = needed_tree(world.state(), world.text("text.so", std::string(100, 'x')));
    EXPECT_EQ(text.error, "invalid ELF header");
}

TEST(NeededTree, ResolvesAProgramAsAtItsStart) {
    const TreeNode root = needed_tree(ElfWorld().state(), "/bin/sh");
    EXPECT_FALSE(root.missing());
    EXPECT_FALSE(root.children.empty());
    EXPECT_TRUE(missing_in(root).empty());
}

}  // namespace cudiag
