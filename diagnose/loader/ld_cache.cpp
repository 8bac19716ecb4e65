#include "diagnose/loader/ld_cache.h"

#include <algorithm>
#include <cstring>
#include <fstream>
#include <iterator>
#include <optional>

namespace cudiag {
namespace {

constexpr std::string_view kOldMagic = "ld.so-1.7.0";
constexpr std::string_view kNewMagic = "glibc-ld.so.cache1.1";
constexpr std::size_t kOldHeader = 16;  // magic padded, count
constexpr std::size_t kOldEntry = 12;   // flags, key, value
constexpr std::size_t kNewHeader = 48;
constexpr std::size_t kNewEntry = 24;  // flags, key, value, osversion, hwcap
constexpr std::uint32_t kExtensionMagic = 0xEAA42174;
constexpr std::uint32_t kHwcapsTag = 1;
constexpr std::uint64_t kNamed = std::uint64_t{1} << 62;
constexpr std::uint64_t kPlatformBits = std::uint64_t{15} << 48;
constexpr std::uint64_t kTlsBit = std::uint64_t{1} << 63;
constexpr std::uint64_t kIsaLevelMask = 0x3ff;  // in the upper half of a named hwcap

class Bytes {
  public:
    explicit Bytes(std::string_view data) : data_{data} {}

    template <class Number>
    std::optional<Number> number(std::size_t offset) const {
        if (offset > data_.size() || data_.size() - offset < sizeof(Number)) {
            return std::nullopt;
        }
        Number value;
        std::memcpy(&value, data_.data() + offset, sizeof value);
        return value;
    }

    std::optional<std::string> text(std::size_t offset) const {
        if (offset >= data_.size()) {
            return std::nullopt;
        }
        const std::string_view rest = data_.substr(offset);
        return std::string(rest.substr(0, rest.find('\0')));
    }

    bool begins(std::size_t offset, std::string_view magic) const {
        return offset <= data_.size() && data_.substr(offset, magic.size()) == magic;
    }

    std::size_t size() const { return data_.size(); }

  private:
    std::string_view data_;
};

// Names of the glibc-hwcaps subdirectories, which named entries refer to by number. Offsets count
// from the file's start.
std::vector<std::string> subdirectories(const Bytes& file, std::uint32_t directory) {
    std::vector<std::string> names;
    const auto magic = file.number<std::uint32_t>(directory);
    const auto count = file.number<std::uint32_t>(std::size_t{directory} + 4);
    if (directory == 0 || !magic || *magic != kExtensionMagic || !count) {
        return names;
    }
    for (std::uint32_t i = 0; i < std::min(*count, 64U); ++i) {
        const std::size_t section = std::size_t{directory} + 8 + std::size_t{16} * i;
        const auto tag = file.number<std::uint32_t>(section);
        const auto offset = file.number<std::uint32_t>(section + 8);
        const auto size = file.number<std::uint32_t>(section + 12);
        if (!tag || !offset || !size) {
            break;
        }
        if (*tag != kHwcapsTag) {
            continue;
        }
        for (std::uint32_t at = 0; at + 4 <= std::min(*size, 4096U); at += 4) {
            const auto name = file.number<std::uint32_t>(std::size_t{*offset} + at);
            names.push_back(name ? file.text(*name).value_or("") : "");
        }
    }
    return names;
}

std::vector<CacheEntry> new_entries(const Bytes& file, std::size_t start) {
    std::vector<CacheEntry> entries;
    const auto count = file.number<std::uint32_t>(start + kNewMagic.size());
    const auto flags = file.number<std::uint8_t>(start + 28);
    const auto extension = file.number<std::uint32_t>(start + 32);
    // 0: byte order not told; 2: little-endian.
    if (!count || !flags || !extension || (*flags != 0 && (*flags & 3) != 2) ||
        *count > (file.size() - start) / kNewEntry) {
        return entries;
    }
    const std::vector<std::string> names = subdirectories(file, *extension);
    for (std::uint32_t i = 0; i < *count; ++i) {
        const std::size_t at = start + kNewHeader + kNewEntry * i;
        const auto key = file.number<std::uint32_t>(at + 4);
        const auto value = file.number<std::uint32_t>(at + 8);
        const auto hwcap = file.number<std::uint64_t>(at + 16);
        const auto name = key ? file.text(start + *key) : std::nullopt;
        const auto path = value ? file.text(start + *value) : std::nullopt;
        if (!name || !path || !hwcap) {
            break;
        }
        CacheEntry entry{*file.number<std::int32_t>(at), *name, *path, *hwcap, false, {}, 0};
        const std::uint64_t upper = *hwcap >> 32;
        if ((upper & ~kIsaLevelMask) == kNamed >> 32) {
            const auto index = static_cast<std::uint32_t>(*hwcap);
            entry.named = true;
            entry.subdirectory = index < names.size() ? names[index] : "";
            entry.isa_level = static_cast<unsigned>(upper & kIsaLevelMask);
        }
        entries.push_back(std::move(entry));
    }
    return entries;
}

std::vector<CacheEntry> old_entries(const Bytes& file, std::uint32_t count) {
    std::vector<CacheEntry> entries;
    const std::size_t strings = kOldHeader + kOldEntry * count;
    for (std::uint32_t i = 0; i < count; ++i) {
        const std::size_t at = kOldHeader + kOldEntry * i;
        const auto key = file.number<std::uint32_t>(at + 4);
        const auto value = file.number<std::uint32_t>(at + 8);
        const auto name = key ? file.text(strings + *key) : std::nullopt;
        const auto path = value ? file.text(strings + *value) : std::nullopt;
        if (!name || !path) {
            break;
        }
        entries.push_back({*file.number<std::int32_t>(at), *name, *path, 0, false, {}, 0});
    }
    return entries;
}

bool digit(char c) {
    return c >= '0' && c <= '9';
}

// The value wraps as glibc's int does, without the undefined behaviour.
std::int32_t take_number(std::string_view& text) {
    std::uint32_t value = 0;
    while (!text.empty() && digit(text.front())) {
        value = value * 10 + static_cast<std::uint32_t>(text.front() - '0');
        text.remove_prefix(1);
    }
    return static_cast<std::int32_t>(value);
}

}  // namespace

int compare_cache_names(std::string_view a, std::string_view b) {
    while (!a.empty()) {
        const char theirs = b.empty() ? '\0' : b.front();
        if (digit(a.front()) && digit(theirs)) {
            const std::int32_t mine_value = take_number(a);
            const std::int32_t their_value = take_number(b);
            if (mine_value != their_value) {
                return mine_value < their_value ? -1 : 1;
            }
            continue;
        }
        if (digit(a.front())) {
            return 1;
        }
        if (digit(theirs)) {
            return -1;
        }
        if (a.front() != theirs) {
            return a.front() < theirs ? -1 : 1;
        }
        a.remove_prefix(1);
        b.remove_prefix(1);
    }
    return b.empty() ? 0 : -1;
}

LdCache LdCache::read(const std::string& path) {
    LdCache cache;
    std::ifstream stream(path, std::ios::binary);
    const std::string data{std::istreambuf_iterator<char>(stream),
                           std::istreambuf_iterator<char>()};
    const Bytes file(data);
    if (file.begins(0, kNewMagic)) {
        cache.entries_ = new_entries(file, 0);
        return cache;
    }
    const auto count = file.number<std::uint32_t>(12);
    if (!file.begins(0, kOldMagic) || !count || *count > file.size() / kOldEntry) {
        return cache;
    }
    const std::size_t end = kOldHeader + kOldEntry * *count;
    const std::size_t aligned = (end + 7) & ~std::size_t{7};
    cache.entries_ =
        file.begins(aligned, kNewMagic) ? new_entries(file, aligned) : old_entries(file, *count);
    return cache;
}

std::string LdCache::find(std::string_view name, const CacheTaste& taste) const {
    // The table is sorted from the highest name down.
    const auto first = std::lower_bound(entries_.begin(), entries_.end(), name,
                                        [](const CacheEntry& entry, std::string_view wanted) {
                                            return compare_cache_names(entry.name, wanted) > 0;
                                        });
    const CacheEntry* best = nullptr;
    std::size_t best_rank = 0;
    for (auto entry = first; entry != entries_.end() && compare_cache_names(entry->name, name) == 0;
         ++entry) {
        if (entry->flags != taste.flags) {
            continue;
        }
        if (entry->named) {
            const auto place = std::find(taste.subdirectories.begin(), taste.subdirectories.end(),
                                         entry->subdirectory);
            const auto rank = static_cast<std::size_t>(place - taste.subdirectories.begin());
            if (place == taste.subdirectories.end() || entry->isa_level > taste.isa_level ||
                (best != nullptr && rank >= best_rank)) {
                continue;
            }
            best = &*entry;
            best_rank = rank;
            continue;
        }
        if (best != nullptr) {
            break;  // named entries come first: the best of them stands
        }
        const std::uint64_t platform = entry->hwcap & kPlatformBits;
        const bool fits =
            taste.legacy_hwcaps
                ? (entry->hwcap & ~(taste.legacy_bits | kPlatformBits | kTlsBit)) == 0 &&
                      (platform == 0 || platform == taste.platform_bit)
                : entry->hwcap == 0;
        if (fits) {
            best = &*entry;
            break;
        }
    }
    return best != nullptr ? best->path : std::string{};
}

}  // namespace cudiag
