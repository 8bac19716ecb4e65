#include "diagnose/cuda/device_lines.h"

#include <elfutils/libdw.h>
#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <memory>
#include <tuple>

namespace cudiag {
namespace {

constexpr std::size_t kMostLines = 1U << 22;

struct EndElf {
    void operator()(Elf* elf) const { elf_end(elf); }
};

struct EndDwarf {
    void operator()(Dwarf* dwarf) const { dwarf_end(dwarf); }
};

}  // namespace

DeviceLines::DeviceLines(const std::string& image) {
    elf_version(EV_CURRENT);
    // libelf takes a mutable buffer and does not write to it.
    const std::unique_ptr<Elf, EndElf> elf{
        elf_memory(const_cast<char*>(image.data()), image.size())};
    const std::unique_ptr<Dwarf, EndDwarf> dwarf{
        elf == nullptr ? nullptr : dwarf_begin_elf(elf.get(), DWARF_C_READ, nullptr)};
    if (dwarf == nullptr) {
        return;
    }
    std::map<std::string, std::uint32_t> numbers;
    Dwarf_CU* unit = nullptr;  // there are none: -lineinfo gives line tables alone
    Dwarf_Off next = 0;
    Dwarf_Lines* lines = nullptr;
    std::size_t count = 0;
    for (Dwarf_Off at = 0;
         lines_.size() < kMostLines &&
         dwarf_next_lines(dwarf.get(), at, &next, &unit, nullptr, nullptr, &lines, &count) == 0 &&
         next > at;
         at = next) {
        for (std::size_t i = 0; i < count && lines_.size() < kMostLines; ++i) {
            Dwarf_Line* line = dwarf_onesrcline(lines, i);
            Dwarf_Addr address = 0;
            Line read;
            const char* file = line == nullptr ? nullptr : dwarf_linesrc(line, nullptr, nullptr);
            // What was not loaded stands at address 0.
            if (file == nullptr || dwarf_lineaddr(line, &address) != 0 || address == 0 ||
                dwarf_lineno(line, &read.number) != 0 ||
                dwarf_lineendsequence(line, &read.end) != 0) {
                continue;
            }
            read.address = address;
            const auto [known, is_new] =
                numbers.emplace(file, static_cast<std::uint32_t>(files_.size()));
            if (is_new) {
                files_.emplace_back(file);
            }
            read.file = known->second;
            lines_.push_back(read);
        }
    }
    // Where one function ends another may begin.
    std::stable_sort(lines_.begin(), lines_.end(), [](const Line& a, const Line& b) {
        return std::tuple{a.address, !a.end} < std::tuple{b.address, !b.end};
    });
}

std::string DeviceLines::source_of(std::uint64_t address) const {
    const auto after = std::upper_bound(
        lines_.begin(), lines_.end(), address,
        [](std::uint64_t wanted, const Line& line) { return wanted < line.address; });
    if (after == lines_.begin() || std::prev(after)->end) {
        return {};
    }
    const Line& line = *std::prev(after);
    return fmt::format("{}:{}", files_[line.file], line.number);
}

}  // namespace cudiag
