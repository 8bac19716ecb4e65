#include "tests/unit/diagnose/build/facts.h"

namespace cudiag {
namespace {

// A loader-abi-mismatch of cache/fused/fused.so.
Finding mismatch(const ElfWorld& world, const std::string& built_with, const std::string& torch) {
    Finding finding;
    finding.slug = "loader-abi-mismatch";
    finding.evidence["file"] = world.path("cache/fused/fused.so");
    finding.evidence["built_with"] = built_with;
    finding.evidence["torch"] = torch;
    finding.cause_of = {"5.1"};
    finding.fixes = {Fix{.text = "build it anew", .command = "rm -r x", .proved = false}};
    return finding;
}

TEST(BuildStaleCache, TellsBothTorchesOfASharedDirectory) {
    const ElfWorld world;
    world.text("cache/fused/build.ninja", "");
    const auto finding = build_stale_cache(mismatch(world, "2.9.1+cu128", "2.13.0+cu130"));
    ASSERT_TRUE(finding);
    EXPECT_EQ(finding->slug, "build-stale-cache");
    EXPECT_EQ(finding->title,
              "fused.so comes from a cache of builds that several environments share: it was built "
              "with torch 2.9.1+cu128, and torch 2.13.0+cu130 loads it");
    EXPECT_EQ(finding->evidence["built_with"], "2.9.1+cu128");
    EXPECT_EQ(finding->evidence["loaded_by"], "2.13.0+cu130");
    EXPECT_EQ(finding->evidence["cache"], world.path("cache/fused"));
    EXPECT_EQ(finding->evidence["file"], world.path("cache/fused/fused.so"));
    EXPECT_TRUE(finding->cause_of.empty());
    EXPECT_EQ(testing::commands_of(*finding).front(), "rm -r x");
}

TEST(BuildStaleCache, ComparesTheReleaseAndNotThePlaceOfTheOtherTorch) {
    const ElfWorld world;
    world.text("cache/fused/build.ninja", "");
    const std::string elsewhere = " in /other/venv/lib/python3.11/site-packages";
    EXPECT_TRUE(build_stale_cache(mismatch(world, "2.9.1" + elsewhere, "2.13.0")));
    EXPECT_FALSE(build_stale_cache(mismatch(world, "2.13.0" + elsewhere, "2.13.0")));
}

TEST(BuildStaleCache, IsSilentWhereTheTorchesAreTheSameOrOneIsUnknown) {
    const ElfWorld world;
    world.text("cache/fused/build.ninja", "");
    EXPECT_FALSE(build_stale_cache(mismatch(world, "2.13.0", "2.13.0")));
    EXPECT_FALSE(build_stale_cache(mismatch(world, "", "2.13.0")));
    EXPECT_FALSE(build_stale_cache(mismatch(world, "not recorded in the file", "2.13.0")));
    EXPECT_FALSE(build_stale_cache(mismatch(world, "2.9.1", "")));
}

TEST(BuildStaleCache, IsSilentOfAFileThatNoNinjaBuilt) {
    const ElfWorld world;
    EXPECT_FALSE(build_stale_cache(mismatch(world, "2.9.1", "2.13.0")));
}

TEST(BuildStaleCache, IsSilentOfOtherFindings) {
    const ElfWorld world;
    world.text("cache/fused/build.ninja", "");
    Finding other = mismatch(world, "2.9.1", "2.13.0");
    other.slug = "loader-missing-library";
    EXPECT_FALSE(build_stale_cache(other));
    EXPECT_FALSE(build_stale_cache(Finding{}));
}

}  // namespace
}  // namespace cudiag
