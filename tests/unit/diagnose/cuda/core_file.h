// Core dumps of a GPU made by hand, as NVIDIA's cudacoredump.h has them.
#pragma once

#include <elf.h>

#include <cstring>
#include <string>
#include <vector>

#include "tests/unit/diagnose/little_endian.h"

namespace cudiag::testing {

// A row: 64-bit numbers, then 32-bit ones.
inline std::string row(const std::vector<std::uint64_t>& wide,
                       const std::vector<std::uint64_t>& narrow) {
    std::string bytes;
    for (const std::uint64_t value : wide) {
        bytes += bytes_of(value, 8);
    }
    for (const std::uint64_t value : narrow) {
        bytes += bytes_of(value, 4);
    }
    return bytes;
}

// An ELF file of sections and nothing else.
class SectionsFile {
  public:
    explicit SectionsFile(std::uint16_t type = ET_CORE, std::uint16_t machine = 190)
        : type_{type}, machine_{machine}, sections_(1) {}

    // The number of the section, to which those below it link.
    std::uint32_t add(std::uint32_t type, std::uint32_t link, std::uint32_t info,
                      const std::string& bytes, std::uint64_t entry_size = 0) {
        Elf64_Shdr header = {};
        header.sh_type = type;
        header.sh_link = link;
        header.sh_info = info;
        header.sh_offset = sizeof(Elf64_Ehdr) + data_.size();
        header.sh_size = bytes.size();
        header.sh_entsize = entry_size != 0 ? entry_size : bytes.size();
        data_ += bytes;
        sections_.push_back(header);
        return static_cast<std::uint32_t>(sections_.size() - 1);
    }

    Elf64_Shdr& section(std::uint32_t number) { return sections_[number]; }

    std::string bytes() const {
        Elf64_Ehdr header = {};
        std::memcpy(header.e_ident, ELFMAG, SELFMAG);
        header.e_ident[EI_CLASS] = ELFCLASS64;
        header.e_ident[EI_DATA] = ELFDATA2LSB;
        header.e_ident[EI_VERSION] = EV_CURRENT;
        header.e_type = type_;
        header.e_machine = machine_;
        header.e_version = EV_CURRENT;
        header.e_shoff = sizeof header + data_.size();
        header.e_ehsize = sizeof header;
        header.e_shentsize = sizeof(Elf64_Shdr);
        header.e_shnum = static_cast<std::uint16_t>(sections_.size());
        std::string file{reinterpret_cast<const char*>(&header), sizeof header};
        file += data_;
        for (const Elf64_Shdr& section : sections_) {
            file.append(reinterpret_cast<const char*>(&section), sizeof section);
        }
        return file;
    }

  private:
    std::uint16_t type_, machine_;
    std::string data_;
    std::vector<Elf64_Shdr> sections_;
};

struct MadeFunction {
    std::string name;
    std::uint64_t address = 0, size = 0;
    bool kernel = true;
    std::uint16_t section = 1;
};

// The code of a module as it was loaded.
inline std::string module_with(const std::vector<MadeFunction>& functions) {
    SectionsFile file{ET_EXEC};
    std::string names(1, '\0');
    std::string symbols(sizeof(Elf64_Sym), '\0');
    for (const MadeFunction& function : functions) {
        Elf64_Sym symbol = {};
        symbol.st_name = static_cast<std::uint32_t>(names.size());
        symbol.st_info = ELF64_ST_INFO(STB_GLOBAL, STT_FUNC);
        symbol.st_other = function.kernel ? 0x10 : 0;
        symbol.st_shndx = function.section;
        symbol.st_value = function.address;
        symbol.st_size = function.size;
        names += function.name + '\0';
        symbols.append(reinterpret_cast<const char*>(&symbol), sizeof symbol);
    }
    const std::uint32_t strings = file.add(SHT_STRTAB, 0, 0, names);
    file.add(SHT_SYMTAB, strings, 0, symbols, sizeof(Elf64_Sym));
    return file.bytes();
}

constexpr std::uint64_t kKernelAt = 0x7f0000000100;
constexpr std::uint64_t kCalleeAt = 0x7f0000000300;
constexpr std::uint64_t kOtherAt = 0x7f0000000500;
constexpr std::uint64_t kUser = 0x80000000;

// One device, one context with one module (axpy, a function that it calls, and another kernel), one
// grid of axpy, and multiprocessors to which blocks are added. Rows are those of the first drivers:
// no field that came later is there.
class CoreFile : public SectionsFile {
  public:
    CoreFile() {
        add(SHT_STRTAB, 0, 0, std::string("\0Made GPU\0sm_90\0", 16));
        devices = add(kUser + 9, 0, 0, row({1, 1, 10}, {0, 1, 2, 4, 64, 32, 255, 8, 9, 0, 16, 0}));
        const auto contexts = add(kUser + 10, devices, 0, row({0xc0, 0, 0, 0}, {0, 7}));
        const auto modules = add(kUser + 16, contexts, 0, row({0x30}, {}));
        module = add(kUser + 7, modules, 0,
                     module_with({{"_Z4axpyPfi", kKernelAt, 0x300},
                                  {"_Z4helpi", kCalleeAt, 0x100, false},
                                  {"_Z5otherv", kOtherAt, 0x100, true, 2},
                                  {"_Z10not_loadedv", 0, 0x100}}));
        add(kUser + 12, devices, 0,
            row({66, 0xc0, 0xf0, kKernelAt, 0x30, 0, 0}, {2, 0, 2, 24, 8, 1, 1, 64, 2, 1, 0, 7}));
    }

    // To be called once: a row of 8 bytes for each, or of 24 with an exception.
    void multiprocessors(const std::string& rows, std::uint64_t entry_size) {
        sms = add(kUser + 11, devices, 0, rows, entry_size);
    }

    // A block of the grid on a multiprocessor, with one warp of these threads.
    void block(std::uint32_t sm, std::uint64_t index, const std::string& warp,
               const std::string& threads) {
        const auto blocks = add(kUser + 13, sms, sm, row({66}, {index, 0, 0, 0}));
        const auto warps = add(kUser + 14, blocks, 0, warp);
        add(kUser + 15, warps, 0, threads, 48);
    }

    std::uint32_t devices = 0, module = 0, sms = 0;
};

// A warp whose exception was at an address (0: not known).
inline std::string warp_at(std::uint64_t error_pc, bool broken = false) {
    return row({error_pc},
               {0, 0xffffffff, 0xffffffff, broken ? 1U : 0U, error_pc != 0 ? 1U : 0U, 0});
}

inline std::string thread_at(std::uint64_t pc, std::uint64_t lane, std::uint64_t exception) {
    return row({pc, 0}, {lane, lane, 0, 0, exception, 0, 0, 0});
}

}  // namespace cudiag::testing
