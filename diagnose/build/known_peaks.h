// Peak memory of one compiler of a PyTorch extension, measured on DeepSpeed's fused_adam
// (CUDA 13.0, gcc 12; docs/howto/a-build-fails.md). Of a source that includes torch's headers;
// others need less.
#pragma once

#include <cstdint>
#include <string_view>

namespace cudiag {

struct KnownPeak {
    std::string_view tool;
    std::uint64_t bytes;
};

inline constexpr KnownPeak kKnownPeaks[] = {
    {"cc1plus", 2'000'000'000}, {"cicc", 1'330'000'000}, {"cudafe++", 1'210'000'000}};

// 0 for a tool that was not measured.
constexpr std::uint64_t known_peak(std::string_view tool) {
    for (const KnownPeak& known : kKnownPeaks) {
        if (known.tool == tool) {
            return known.bytes;
        }
    }
    return 0;
}

}  // namespace cudiag
