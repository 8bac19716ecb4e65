#include "diagnose/cuda/device_functions.h"

#include <gelf.h>

#include <algorithm>
#include <memory>
#include <tuple>

namespace cudiag {
namespace {

constexpr std::size_t kMostFunctions = 1U << 20;
constexpr unsigned char kEntry = 0x10;  // STO_CUDA_ENTRY in st_other: the function is a kernel

struct EndElf {
    void operator()(Elf* elf) const { elf_end(elf); }
};

}  // namespace

DeviceFunctions::DeviceFunctions(std::string image) {
    elf_version(EV_CURRENT);
    const std::unique_ptr<Elf, EndElf> elf{elf_memory(image.data(), image.size())};
    if (elf == nullptr || elf_kind(elf.get()) != ELF_K_ELF) {
        return;
    }
    for (Elf_Scn* section = nullptr; (section = elf_nextscn(elf.get(), section)) != nullptr;) {
        GElf_Shdr header = {};
        Elf_Data* symbols = nullptr;
        if (gelf_getshdr(section, &header) == nullptr || header.sh_type != SHT_SYMTAB ||
            (symbols = elf_getdata(section, nullptr)) == nullptr) {
            continue;
        }
        GElf_Sym symbol = {};
        for (int i = 0; gelf_getsym(symbols, i, &symbol) != nullptr; ++i) {
            // What was not loaded has no address yet: functions are loaded when first called.
            if (GELF_ST_TYPE(symbol.st_info) != STT_FUNC || symbol.st_value == 0 ||
                symbol.st_size == 0 || functions_.size() >= kMostFunctions) {
                continue;
            }
            const char* name = elf_strptr(elf.get(), header.sh_link, symbol.st_name);
            functions_.push_back({.address = symbol.st_value,
                                  .size = symbol.st_size,
                                  .section = symbol.st_shndx,
                                  .kernel = (symbol.st_other & kEntry) != 0,
                                  .name = name == nullptr ? "" : name});
        }
    }
    std::sort(functions_.begin(), functions_.end(), [](const Function& a, const Function& b) {
        return std::tuple{a.address, b.size} < std::tuple{b.address, a.size};
    });
}

std::optional<DevicePlace> DeviceFunctions::place_of(std::uint64_t address) const {
    const auto end = std::upper_bound(
        functions_.begin(), functions_.end(), address,
        [](std::uint64_t wanted, const Function& function) { return wanted < function.address; });
    std::optional<DevicePlace> place;
    // Backwards from the innermost; the functions that a kernel calls stand behind it in its
    // section.
    constexpr int kMostLookedAt = 4096;
    std::uint32_t section = 0;
    int looked_at = 0;
    for (auto function = end; function != functions_.begin() && looked_at < kMostLookedAt;
         ++looked_at) {
        --function;
        if (!place && address - function->address < function->size) {
            section = function->section;
            place = DevicePlace{
                .kernel = "", .function = function->name, .offset = address - function->address};
        }
        if (place && function->kernel && function->section == section) {
            place->kernel = function->name;
            break;
        }
    }
    return place;
}

}  // namespace cudiag
