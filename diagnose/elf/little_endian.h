// Numbers in bytes that are little-endian whatever this machine is: what is made for GPUs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace cudiag {

// 0 beyond the end of what could be read.
template <typename Number>
Number number_at(std::string_view bytes, std::size_t offset) {
    if (offset > bytes.size() || sizeof(Number) > bytes.size() - offset) {
        return 0;
    }
    std::uint64_t value = 0;
    for (std::size_t i = sizeof(Number); i > 0; --i) {
        value = value << 8 | static_cast<unsigned char>(bytes[offset + i - 1]);
    }
    return static_cast<Number>(value);
}

}  // namespace cudiag
