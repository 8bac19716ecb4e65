// Any bytes as the journal of a build, and what is made of its entries.
#include <cstddef>
#include <cstdint>
#include <span>

#include "tests/fuzz/targets.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    cudiag::fuzz::journal(std::as_bytes(std::span(data, size)));
    return 0;
}
