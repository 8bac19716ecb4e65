// Quantities in the units of people. Header-only: diagnose/ writes titles with it, present/
// evidence.
#pragma once

#include <fmt/core.h>

#include <cstdint>
#include <string>

#include "diagnose/say.h"

namespace cudiag {

// "1.3 GB", "512 MB": decimal, as memory limits and disks are given. "4096 bytes" below 1 MB.
inline std::string bytes_text(std::uint64_t bytes) {
    constexpr double kMega = 1e6;
    constexpr double kGiga = 1e9;
    const auto number = static_cast<double>(bytes);
    return number >= kGiga   ? fmt::format("{:.1f} GB", number / kGiga)
           : number >= kMega ? fmt::format("{:.0f} MB", number / kMega)
                             : say("{} bytes", bytes);
}

}  // namespace cudiag
