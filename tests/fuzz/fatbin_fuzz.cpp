// Any bytes as a file with device code, through diagnose/elf/fatbin.
#include <cstddef>
#include <cstdint>
#include <span>

#include "tests/fuzz/targets.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    cudiag::fuzz::fatbin(std::as_bytes(std::span(data, size)));
    return 0;
}
