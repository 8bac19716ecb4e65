// Any bytes as a recording: no crash, no hang, and no event that does not fit into the file.
#include <cstddef>
#include <cstdint>
#include <span>

#include "tests/fuzz/targets.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    cudiag::fuzz::reader(std::as_bytes(std::span(data, size)));
    return 0;
}
