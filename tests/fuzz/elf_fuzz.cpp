// Any bytes as an ELF file, through every function of diagnose/elf that opens one.
#include <cstddef>
#include <cstdint>
#include <span>

#include "tests/fuzz/targets.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    cudiag::fuzz::elf(std::as_bytes(std::span(data, size)));
    return 0;
}
