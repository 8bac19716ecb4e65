// Large numbers for people.
#pragma once

#include <fmt/core.h>

#include <cstdint>
#include <string>

namespace cudiag {

// "1,000,000,000".
inline std::string grouped(std::uint64_t number) {
    constexpr std::ptrdiff_t kGroup = 3;
    std::string digits = fmt::format("{}", number);
    for (auto at = static_cast<std::ptrdiff_t>(digits.size()) - kGroup; at > 0; at -= kGroup) {
        digits.insert(static_cast<std::size_t>(at), ",");
    }
    return digits;
}

}  // namespace cudiag
