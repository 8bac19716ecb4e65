#include "diagnose/loader/ld_cache.h"

#include <gtest/gtest.h>

#include <cstring>
#include <fstream>
#include <sstream>

#include "diagnose/loader/config.h"
#include "elf_world.h"

namespace cudiag {
namespace {

// Writes caches as ldconfig would.
class CacheWriter {
  public:
    void add(const std::string& name, const std::string& path, std::uint64_t hwcap = 0,
             std::int32_t flags = 0x303) {
        entries_.push_back({name, path, hwcap, flags});
    }

    void subdirectory(const std::string& name) { subdirectories_.push_back(name); }

    std::string new_format(std::size_t string_base = 0) const {
        std::string strings;
        const std::size_t table = 48 + 24 * entries_.size();
        std::string body;
        for (const Entry& entry : entries_) {
            put(body, entry.flags);
            put(body,
                static_cast<std::uint32_t>(string_base + table + intern(strings, entry.name)));
            put(body,
                static_cast<std::uint32_t>(string_base + table + intern(strings, entry.path)));
            put(body, std::uint32_t{0});
            put(body, entry.hwcap);
        }
        std::vector<std::uint32_t> names;
        for (const std::string& name : subdirectories_) {
            names.push_back(static_cast<std::uint32_t>(table + intern(strings, name)));
        }
        strings.resize((strings.size() + 3) / 4 * 4);
        const auto extension = static_cast<std::uint32_t>(table + strings.size());
        std::string head = "glibc-ld.so.cache1.1";
        put(head, static_cast<std::uint32_t>(entries_.size()));
        put(head, static_cast<std::uint32_t>(strings.size()));
        put(head, std::uint32_t{2});
        put(head, subdirectories_.empty() ? std::uint32_t{0} : extension);
        head.resize(48);
        std::string tail;
        if (!subdirectories_.empty()) {
            put(tail, std::uint32_t{0xEAA42174});
            put(tail, std::uint32_t{1});
            put(tail, std::uint32_t{1});
            put(tail, std::uint32_t{0});
            put(tail, extension + 24);
            put(tail, static_cast<std::uint32_t>(4 * names.size()));
            for (const std::uint32_t name : names) {
                put(tail, name);
            }
        }
        return head + body + strings + tail;
    }

    std::string old_format() const {
        std::string text = "ld.so-1.7.0";
        text.resize(12);
        put(text, static_cast<std::uint32_t>(entries_.size()));
        std::string strings;
        for (const Entry& entry : entries_) {
            put(text, entry.flags);
            put(text, static_cast<std::uint32_t>(intern(strings, entry.name)));
            put(text, static_cast<std::uint32_t>(intern(strings, entry.path)));
        }
        return text + strings;
    }

  private:
    struct Entry {
        std::string name, path;
        std::uint64_t hwcap;
        std::int32_t flags;
    };

    template <class Number>
    static void put(std::string& text, Number number) {
        text.append(reinterpret_cast<const char*>(&number), sizeof number);
    }

    static std::size_t intern(std::string& strings, const std::string& text) {
        const std::size_t place = strings.size();
        strings += text;
        strings += '\0';
        return place;
    }

    std::vector<Entry> entries_;
    std::vector<std::string> subdirectories_;
};

LdCache read_from(const ElfWorld& world, const std::string& bytes) {
    return LdCache::read(world.text("cache", bytes));
}

CacheTaste taste() {
    CacheTaste result;
    result.flags = 0x303;
    return result;
}

constexpr std::uint64_t kNamed = std::uint64_t{1} << 62;

}  // namespace

TEST(LdSoCache, FindsWhatLdconfigSaysIsThere) {
    const LoadState state = ElfWorld().state();
    const LoaderRun run = run_loader({"/sbin/ldconfig", "-p"}, {}, "", 10);
    if (!run.started || run.status != 0) {
        GTEST_SKIP() << "no /sbin/ldconfig here";
    }
    const LdCache cache = LdCache::read(state.config.cache_path);
    const CacheTaste host = cache_taste(state.config);
    std::istringstream stream(run.out);
    std::map<std::string, std::string> first;
    for (std::string line; std::getline(stream, line);) {
        const std::size_t paren = line.find(" (libc6,x86-64) => ");
        if (paren != std::string::npos) {
            first.emplace(line.substr(1, paren - 1), line.substr(paren + 19));
        }
    }
    for (const auto& [name, path] : first) {
        EXPECT_EQ(cache.find(name, host), path);
    }
    EXPECT_EQ(cache.find("libof-no-one.so.1", host), "");
}

TEST(LdSoCache, ComparesNumbersInNamesAsNumbers) {
    EXPECT_LT(compare_cache_names("libx.so.2", "libx.so.10"), 0);
    EXPECT_GT(compare_cache_names("libx.so.10", "libx.so.9"), 0);
    EXPECT_EQ(compare_cache_names("libx.so.1", "libx.so.01"), 0);
    EXPECT_LT(compare_cache_names("libx.so", "libx.so.1"), 0);
    EXPECT_GT(compare_cache_names("lib1", "libx"), 0);
}

TEST(LdSoCache, FindsEveryNameInATableSortedBackwards) {
    const ElfWorld world;
    CacheWriter writer;
    for (const char* name : {"libz.so.1", "libx.so.10", "libx.so.9", "liba.so.1"}) {
        writer.add(name, std::string("/lib/") + name);
    }
    const LdCache cache = read_from(world, writer.new_format());
    for (const char* name : {"libz.so.1", "libx.so.10", "libx.so.9", "liba.so.1"}) {
        EXPECT_EQ(cache.find(name, taste()), std::string("/lib/") + name);
    }
    EXPECT_EQ(cache.find("libx.so.8", taste()), "");
}

TEST(LdSoCache, PassesOverEntriesOfOtherMachines) {
    const ElfWorld world;
    CacheWriter writer;
    writer.add("libx.so.1", "/lib32/libx.so.1", 0, 0x3);
    writer.add("libx.so.1", "/lib/libx.so.1");
    EXPECT_EQ(read_from(world, writer.new_format()).find("libx.so.1", taste()), "/lib/libx.so.1");
}

TEST(LdSoCache, TakesTheBestSubdirectoryThatTheProcessorHas) {
    const ElfWorld world;
    CacheWriter writer;
    writer.subdirectory("x86-64-v2");
    writer.subdirectory("x86-64-v3");
    writer.add("libx.so.1", "/lib/v2/libx.so.1", kNamed | std::uint64_t{1} << 32 | 0);
    writer.add("libx.so.1", "/lib/v3/libx.so.1", kNamed | std::uint64_t{2} << 32 | 1);
    writer.add("libx.so.1", "/lib/libx.so.1");
    const LdCache cache = read_from(world, writer.new_format());
    CacheTaste host = taste();
    EXPECT_EQ(cache.find("libx.so.1", host), "/lib/libx.so.1");
    host.subdirectories = {"x86-64-v2"};
    host.isa_level = 1;
    EXPECT_EQ(cache.find("libx.so.1", host), "/lib/v2/libx.so.1");
    host.subdirectories = {"x86-64-v3", "x86-64-v2"};
    host.isa_level = 2;
    EXPECT_EQ(cache.find("libx.so.1", host), "/lib/v3/libx.so.1");
    host.isa_level = 1;  // a file that demands more than the processor has is passed over
    EXPECT_EQ(cache.find("libx.so.1", host), "/lib/v2/libx.so.1");
}

TEST(LdSoCache, LegacyHwcapsCountForOldLoadersOnly) {
    const ElfWorld world;
    CacheWriter writer;
    writer.add("libx.so.1", "/lib/haswell/libx.so.1", std::uint64_t{1} << 50);
    writer.add("libx.so.1", "/lib/avx512_1/libx.so.1", std::uint64_t{1} << 2);
    writer.add("libx.so.1", "/lib/libx.so.1");
    const LdCache cache = read_from(world, writer.new_format());
    CacheTaste host = taste();
    EXPECT_EQ(cache.find("libx.so.1", host), "/lib/libx.so.1");
    host.legacy_hwcaps = true;
    EXPECT_EQ(cache.find("libx.so.1", host), "/lib/libx.so.1");
    host.legacy_bits = std::uint64_t{1} << 2;
    EXPECT_EQ(cache.find("libx.so.1", host), "/lib/avx512_1/libx.so.1");
    host.platform_bit = std::uint64_t{1} << 50;
    EXPECT_EQ(cache.find("libx.so.1", host), "/lib/haswell/libx.so.1");
}

TEST(LdSoCache, ReadsTheOldTableAndTheNewOneBehindIt) {
    const ElfWorld world;
    CacheWriter old;
    old.add("libx.so.1", "/old/libx.so.1");
    EXPECT_EQ(read_from(world, old.old_format()).find("libx.so.1", taste()), "/old/libx.so.1");
    CacheWriter both;
    both.add("libx.so.1", "/new/libx.so.1");
    std::string bytes = old.old_format();
    // The new table begins at the next multiple of eight behind the old entries, where the old
    // strings were.
    bytes.resize(32);
    bytes += both.new_format();
    EXPECT_EQ(read_from(world, bytes).find("libx.so.1", taste()), "/new/libx.so.1");
}

TEST(LdSoCache, IsEmptyWhenCutShortAnywhereOrAbsent) {
    const ElfWorld world;
    CacheWriter writer;
    writer.subdirectory("x86-64-v3");
    writer.add("libx.so.1", "/lib/libx.so.1", kNamed);
    writer.add("liba.so.1", "/lib/liba.so.1");
    const std::string whole = writer.new_format();
    for (std::size_t length = 0; length < whole.size(); ++length) {
        read_from(world, whole.substr(0, length)).find("liba.so.1", taste());
    }
    EXPECT_TRUE(read_from(world, whole.substr(0, 60)).entries().empty());
    EXPECT_TRUE(LdCache::read(world.path("absent")).entries().empty());
}

}  // namespace cudiag
