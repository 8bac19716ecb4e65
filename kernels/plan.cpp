#include "kernels/plan.h"

#include <algorithm>
#include <cmath>
#include <utility>

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
                  {.dtype = Dtype::bfloat16, .master = true}};
    // What is told: large and small.
    plan.sizes = {{.elements = 1'000'000'000, .tensors = 100},
                  {.elements = 100'000'000, .tensors = 100},
                  {.elements = 10'000, .tensors = 10},
                  {.elements = 100'000, .tensors = 100},
                  {.elements = 10'000'000, .tensors = 10'000}};
    // What predictions are made of: 1000 tensors of each size. torch's chunks have 65536 elements,
    // and from 9 chunks on its launches are full (36 tensors or 320 chunks; 252 or 2240).
    constexpr std::uint64_t kTensors = 1'000;
    for (const std::uint64_t each : {100, 1'000, 4'096, 10'000, 32'768, 65'536, 100'000, 131'072,
                                     196'608, 262'144, 393'216, 524'288, 1'000'000}) {
        plan.sizes.push_back({.elements = each * kTensors, .tensors = kTensors});
    }
    // What they are judged by.
    for (const auto& [each, tensors] : {std::pair{20'000, 300},
                                        {50'000, 2'000},
                                        {80'000, 300},
                                        {200'000, 148},
                                        {300'000, 1'000},
                                        {3'200'000, 310}}) {
        plan.sizes.push_back({.elements = std::uint64_t{1} * each * tensors,
                              .tensors = static_cast<std::uint64_t>(tensors),
                              .checks = true});
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
