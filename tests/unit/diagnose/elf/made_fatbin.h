// Fatbins made by hand, as diagnose/elf/fatbin.h describes them.
#pragma once

#include <cstdint>
#include <string>

#include "tests/unit/diagnose/little_endian.h"

namespace cudiag::testing {

// One image: kind 1 is PTX, 2 is SASS; `version` is PTX's, or that of the compiler.
inline std::string image(unsigned kind, unsigned sm, std::uint64_t flags = 0x11,
                         const std::string& payload = "12345678", unsigned version = 0x90000) {
    return bytes_of(kind, 2) + bytes_of(0x101, 2) + bytes_of(64, 4) + bytes_of(payload.size(), 8) +
           bytes_of(0, 8) + bytes_of(version, 4) + bytes_of(sm, 4) + bytes_of(0, 8) +
           bytes_of(flags, 8) + bytes_of(0, 16) + payload;
}

inline std::string fatbin(const std::string& images) {
    return bytes_of(0xba55ed50, 4) + bytes_of(1, 2) + bytes_of(16, 2) + bytes_of(images.size(), 8) +
           images;
}

}  // namespace cudiag::testing
