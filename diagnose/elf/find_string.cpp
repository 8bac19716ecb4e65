// "What is this file really": a version string that the maker compiled in, found without running
// anything.
#include <cstring>
#include <utility>

#include "diagnose/elf/elf_image.h"

namespace cudiag {
namespace {

constexpr std::uint64_t kWindow = 4U << 20;

using Range = std::pair<std::uint64_t, std::uint64_t>;  // file offset, length

bool printable(char c) {
    return c >= ' ' && c <= '~';
}

// .rodata first: the GPU code in the same segments can be a thousand times larger and holds no such
// strings.
std::vector<Range> ranges_of(const ElfImage& image) {
    std::vector<Range> ranges;
    std::size_t names = 0;
    Elf_Scn* section = nullptr;
    if (elf_getshdrstrndx(image.handle(), &names) == 0) {
        while ((section = elf_nextscn(image.handle(), section)) != nullptr) {
            GElf_Shdr header = {};
            const char* name = gelf_getshdr(section, &header) == nullptr
                                   ? nullptr
                                   : elf_strptr(image.handle(), names, header.sh_name);
            if (name != nullptr && header.sh_type == SHT_PROGBITS &&
                std::strncmp(name, ".rodata", 7) == 0) {
                ranges.emplace_back(header.sh_offset, header.sh_size);
            }
        }
    }
    for (const GElf_Phdr& segment : image.segments()) {
        if (segment.p_type == PT_LOAD && (segment.p_flags & PF_W) == 0) {
            ranges.emplace_back(segment.p_offset, segment.p_filesz);
        }
    }
    return ranges;
}

std::string printable_at(const ElfImage& image, std::uint64_t offset, std::size_t limit) {
    std::string text = image.bytes(offset, limit);
    std::size_t length = 0;
    while (length < text.size() && printable(text[length])) {
        ++length;
    }
    text.resize(length);
    return text;
}

// Offset of the first place in the range where a string begins with `prefix`.
std::optional<std::uint64_t> find_in(const ElfImage& image, const Range& range,
                                     std::string_view prefix) {
    if (range.first >= image.size()) {
        return std::nullopt;
    }
    const std::uint64_t end = range.first + std::min(range.second, image.size() - range.first);
    for (std::uint64_t at = range.first; at < end; at += kWindow) {
        // One byte before, to see whether the string begins here, and the prefix's length beyond.
        const std::uint64_t before = at > range.first ? 1 : 0;
        const std::string window =
            image.bytes(at - before, std::min(end - at, kWindow + prefix.size()) + before);
        for (std::size_t found = window.find(prefix); found != std::string::npos;
             found = window.find(prefix, found + 1)) {
            if (found == 0 ? before == 0 : !printable(window[found - 1])) {
                return at - before + found;
            }
        }
    }
    return std::nullopt;
}

}  // namespace

std::string find_string(const std::string& path, std::string_view prefix, std::size_t limit) {
    const ElfImage image(path);
    if (!image.usable() || prefix.empty()) {
        return {};
    }
    for (const Range& range : ranges_of(image)) {
        if (const auto offset = find_in(image, range, prefix)) {
            return printable_at(image, *offset, limit);
        }
    }
    return {};
}

}  // namespace cudiag
