#include "diagnose/loader/config.h"

#include <gnu/libc-version.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "elf_world.h"

namespace cudiag {
namespace {

bool contains(const std::vector<std::string>& texts, const std::string& text) {
    return std::find(texts.begin(), texts.end(), text) != texts.end();
}

}  // namespace

TEST(LoaderConfigOfThisHost, IsWhatItsLoaderSays) {
    const LoaderConfig config = host_loader_config();
    EXPECT_EQ(config.glibc_version, gnu_get_libc_version());
    EXPECT_TRUE(contains(config.system_dirs, "/lib") || contains(config.system_dirs, "/lib64"));
    for (const std::string& dir : config.system_dirs) {
        EXPECT_EQ(dir.front(), '/');
        EXPECT_NE(dir.back(), '/');
    }
    ASSERT_FALSE(config.hwcaps.empty());
    EXPECT_EQ(config.hwcaps.back(), "");
    EXPECT_EQ(std::count(config.hwcaps.begin(), config.hwcaps.end(), ""), 1);
    EXPECT_FALSE(config.platform.empty());
    EXPECT_FALSE(config.lib.empty());
}

TEST(LoaderConfigOfThisHost, IsTheSameByEveryWayOfAsking) {
    // An interpreter that cannot be asked (here: a copy that may not be executed) is read instead.
    const ElfWorld world;
    const LoaderConfig asked = host_loader_config();
    const std::string copy = world.path("ld.so");
    std::filesystem::copy_file(asked.interpreter, copy);
    std::filesystem::permissions(copy, std::filesystem::perms::owner_read);
    const LoaderConfig read = loader_config_for(copy);
    EXPECT_EQ(read.system_dirs, asked.system_dirs);
    EXPECT_EQ(read.lib, asked.lib);
    EXPECT_EQ(read.platform, asked.platform);
    EXPECT_EQ(read.glibc_version, asked.glibc_version);
}

TEST(LoaderConfig, KnowsWhichRulesCameWithWhichVersion) {
    LoaderConfig config;
    config.glibc_version = "2.31";
    EXPECT_TRUE(has_legacy_hwcaps(config));
    EXPECT_FALSE(glibc_at_least(config, 33));
    config.glibc_version = "2.37";
    EXPECT_FALSE(has_legacy_hwcaps(config));
    EXPECT_TRUE(glibc_at_least(config, 33));
    config.glibc_version = "";
    EXPECT_FALSE(has_legacy_hwcaps(config));
}

TEST(LoaderConfig, OfAFileThatIsNoLoaderIsEmptyAndHarmless) {
    const ElfWorld world;
    const LoaderConfig config = loader_config_for(world.text("text", "not a loader"));
    EXPECT_TRUE(config.system_dirs.empty());
    EXPECT_EQ(config.hwcaps.back(), "");
}

}  // namespace cudiag
