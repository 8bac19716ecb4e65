// /etc/ld.so.cache as ldconfig(8) writes it: "glibc-ld.so.cache1.1", alone or behind the older
// "ld.so-1.7.0" table. Layout: glibc's sysdeps/generic/dl-cache.h.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace cudiag {

struct CacheEntry {
    std::int32_t flags = 0;  // library type and architecture
    std::string name;        // what is asked for
    std::string path;
    std::uint64_t hwcap = 0;   // raw, for the legacy mechanism
    bool named = false;        // in a glibc-hwcaps subdirectory …
    std::string subdirectory;  // … of this name: "x86-64-v3"
    unsigned isa_level = 0;    // the file's own demand, 0 to 3, when named
};

// Which entries the loader of a machine takes.
struct CacheTaste {
    std::int32_t flags = 0;         // 0x303 on x86-64, 0xa03 on AArch64
    bool legacy_hwcaps = false;     // glibc <= 2.36
    std::uint64_t legacy_bits = 0;  // hwcap bits that this CPU has
    std::uint64_t platform_bit = 0;
    std::vector<std::string> subdirectories;  // glibc-hwcaps, best first
    unsigned isa_level = 0;
};

class LdCache {
  public:
    // An absent or damaged file gives an empty cache, as in ld.so. Never throws on hostile bytes.
    static LdCache read(const std::string& path);

    const std::vector<CacheEntry>& entries() const { return entries_; }

    // What ld.so would take for this name, or "".
    std::string find(std::string_view name, const CacheTaste& taste) const;

  private:
    std::vector<CacheEntry>
        entries_;  // in the file's order, which is sorted backwards by compare()
};

// ldconfig's order of names: runs of digits compare as numbers.
int compare_cache_names(std::string_view a, std::string_view b);

}  // namespace cudiag
