// Any bytes as a core dump of a GPU, through diagnose/cuda/core_dump.
#include <cstddef>
#include <cstdint>
#include <span>

#include "tests/fuzz/targets.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    cudiag::fuzz::core_dump(std::as_bytes(std::span(data, size)));
    return 0;
}
