#include "kernels/plan.h"

#include <algorithm>
#include <cmath>

namespace cudiag {

Quartiles quartiles(std::vector<double> values) {
    std::sort(values.begin(), values.end());
    const auto at = [&](double share) {
        const double place = share * static_cast<double>(values.size() - 1);
        const auto below = static_cast<std::size_t>(place);
        const std::size_t above = std::min(below + 1, values.size() - 1);
        return values[below] + (place - std::floor(place)) * (values[above] - values[below]);
    };
    return {.low = at(0.25), .median = at(0.5), .high = at(0.75)};
}

std::uint64_t bytes_of(const AdamSize& size, const AdamKind& kind) {
    const std::size_t low = bytes_of(kind.dtype);
    const std::size_t high = kind.master ? sizeof(float) : low;
    return stride_of(size, high) * size.tensors * (kind.amsgrad ? 4 : 3) +
           stride_of(size, low) * size.tensors * (kind.master ? 2 : 1) +
           size.tensors * kTensorAlignment + 2 * kCopyBytes;
}

MeasurePlan standard_plan(std::uint64_t free_bytes) {
    MeasurePlan plan;
    plan.kinds = {{.dtype = Dtype::float32},
                  {.dtype = Dtype::bfloat16},
                  {.dtype = Dtype::float16},
                  {.dtype = Dtype::bfloat16, .master = true},
                  {.dtype = Dtype::float16, .master = true}};
    for (const std::uint64_t elements : {1'000'000, 10'000'000, 100'000'000, 1'000'000'000}) {
        for (const std::uint64_t tensors : {10, 100, 1'000, 10'000}) {
            plan.sizes.push_back({.elements = elements, .tensors = tensors});
        }
    }
    for (const std::uint64_t elements : {3'000'000, 30'000'000, 300'000'000}) {
        for (const std::uint64_t tensors : {30, 300, 3'000}) {
            plan.sizes.push_back({.elements = elements, .tensors = tensors, .checks = true});
        }
    }
    const auto too_large = [&](const AdamSize& size) {
        return bytes_of(size, {.dtype = Dtype::float32}) > free_bytes / 10 * 9;
    };
    plan.sizes.erase(std::remove_if(plan.sizes.begin(), plan.sizes.end(), too_large),
                     plan.sizes.end());
    return plan;
}

std::uint64_t elements_of(const AdamSize& size, std::uint64_t index) {
    return size.elements / size.tensors + (index < size.elements % size.tensors ? 1 : 0);
}

std::uint64_t stride_of(const AdamSize& size, std::size_t element_bytes) {
    const std::uint64_t bytes = elements_of(size, 0) * element_bytes;
    return (bytes + kTensorAlignment - 1) / kTensorAlignment * kTensorAlignment;
}

}  // namespace cudiag
