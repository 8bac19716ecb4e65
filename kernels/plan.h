// Which sizes are measured, and how repeated times are summed up: pure, without a GPU.
#pragma once

#include <cstdint>
#include <vector>

#include "kernels/packing.h"

namespace cudiag {

// Of each of the two buffers of the copy that steps are compared with: more than any cache.
constexpr std::uint64_t kCopyBytes = std::uint64_t{2} << 30;
// Tensors begin at multiples of this, as torch allocates them.
constexpr std::uint64_t kTensorAlignment = 512;

// First quartile, median and third quartile, by linear interpolation. Of at least one value.
struct Quartiles {
    double low = 0;
    double median = 0;
    double high = 0;
};

Quartiles quartiles(std::vector<double> values);

// A size to measure. `checks`: how well the other sizes tell this one is what is asked.
struct AdamSize {
    std::uint64_t elements = 0;
    std::uint64_t tensors = 0;
    bool checks = false;
};

struct MeasurePlan {
    std::vector<AdamSize> sizes;
    std::vector<AdamKind> kinds;
    int runs = 20;
};

// The plan of `cudiag bench adam`, for a card with so much free memory: sizes by powers of ten from
// 1e6 to 1e9 elements in 10 to 10,000 tensors, and some between. Sizes that do not fit are left
// out.
MeasurePlan standard_plan(std::uint64_t free_bytes);

// Memory that a size takes, what is copied included.
std::uint64_t bytes_of(const AdamSize& size, const AdamKind& kind);

// Elements of tensor number `index`: as equal as can be.
std::uint64_t elements_of(const AdamSize& size, std::uint64_t index);

// From one tensor's begin to the next one's, in an array of elements of so many bytes.
std::uint64_t stride_of(const AdamSize& size, std::size_t element_bytes);

}  // namespace cudiag
