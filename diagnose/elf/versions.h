// The version tables of an ELF file (gABI's GNU extension, DT_VERNEED and DT_VERDEF).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "diagnose/elf/elf_image.h"

namespace cudiag {

struct NumberedVersion {
    std::uint16_t number = 0;  // as .gnu.version refers to it, hidden bit cleared
    bool base = false;         // the file's own name, not a version of a symbol
    NeededVersion version;     // `file` is empty for a definition
};

std::vector<NumberedVersion> needed_versions(const ElfImage& image);
std::vector<NumberedVersion> defined_versions(const ElfImage& image);

}  // namespace cudiag
