// Numbers in files that tests make by hand.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace cudiag::testing {

// A little-endian number of `size` bytes.
inline std::string bytes_of(std::uint64_t value, std::size_t size) {
    std::string bytes;
    for (std::size_t i = 0; i < size; ++i) {
        bytes += static_cast<char>(i < sizeof value ? value >> (8 * i) & 0xff : 0);
    }
    return bytes;
}

}  // namespace cudiag::testing
