#include "diagnose/elf/versions.h"

namespace cudiag {
namespace {

// libc.so.6 defines about 40 versions and the largest programs need about 100: more is a damaged
// file.
constexpr std::uint64_t kMostVersions = 1U << 14;

constexpr std::uint16_t kNumberMask = 0x7fff;

}  // namespace

std::vector<NumberedVersion> needed_versions(const ElfImage& image) {
    std::vector<NumberedVersion> versions;
    const auto start = image.tag(DT_VERNEED);
    auto file_entry = start ? image.offset_of(*start) : std::nullopt;
    for (std::uint64_t files = 0; file_entry && files < kMostVersions; ++files) {
        const auto count = image.half(*file_entry + 2);
        const auto file = image.word(*file_entry + 4);
        const auto first = image.word(*file_entry + 8);
        const auto next = image.word(*file_entry + 12);
        if (!count || !file || !first || !next) {
            break;
        }
        std::uint64_t entry = *file_entry + *first;
        const std::string file_name = image.name(*file);
        for (std::uint32_t i = 0; i < *count && versions.size() < kMostVersions; ++i) {
            const auto flags = image.half(entry + 4);
            const auto number = image.half(entry + 6);
            const auto name = image.word(entry + 8);
            const auto step = image.word(entry + 12);
            if (!flags || !number || !name || !step) {
                break;
            }
            versions.push_back({static_cast<std::uint16_t>(*number & kNumberMask),
                                false,
                                {file_name, image.name(*name), (*flags & VER_FLG_WEAK) != 0}});
            if (*step == 0) {
                break;
            }
            entry += *step;
        }
        if (*next == 0) {
            break;
        }
        *file_entry += *next;
    }
    return versions;
}

std::vector<NumberedVersion> defined_versions(const ElfImage& image) {
    std::vector<NumberedVersion> versions;
    const auto start = image.tag(DT_VERDEF);
    auto entry = start ? image.offset_of(*start) : std::nullopt;
    while (entry && versions.size() < kMostVersions) {
        const auto flags = image.half(*entry + 2);
        const auto number = image.half(*entry + 4);
        const auto first = image.word(*entry + 12);
        const auto next = image.word(*entry + 16);
        if (!flags || !number || !first || !next) {
            break;
        }
        const auto name = image.word(*entry + *first);
        if (!name) {
            break;
        }
        versions.push_back({static_cast<std::uint16_t>(*number & kNumberMask),
                            (*flags & VER_FLG_BASE) != 0,
                            {{}, image.name(*name), (*flags & VER_FLG_WEAK) != 0}});
        if (*next == 0) {
            break;
        }
        *entry += *next;
    }
    return versions;
}

}  // namespace cudiag
