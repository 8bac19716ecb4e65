// AdamW over many tensors in one launch: this card's reference for what an optimizer's step costs.
// Square roots and divisions are precise, so that results are torch's: on an H200 that costs nothing in
// float32, and 2 % in 16 bits (docs/benchmarks.md).
//
// A kernel's name says what it moves: cudiag_adam_<parameters>_<state>[_master][_amsgrad]_<table>.
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include "kernels/adam_math.h"
#include "kernels/adam_table.h"

namespace {

using namespace cudiag;

__device__ __forceinline__ float to_float(float value) { return value; }
__device__ __forceinline__ float to_float(__half value) { return __half2float(value); }
__device__ __forceinline__ float to_float(__nv_bfloat16 value) { return __bfloat162float(value); }

template <typename T>
__device__ __forceinline__ T from_float(float value);

template <>
__device__ __forceinline__ float from_float<float>(float value) {
    return value;
}

template <>
__device__ __forceinline__ __half from_float<__half>(float value) {
    return __float2half_rn(value);
}

template <>
__device__ __forceinline__ __nv_bfloat16 from_float<__nv_bfloat16>(float value) {
    return __float2bfloat16_rn(value);
}

// Four elements, moved at once.
template <typename T>
struct alignas(kAdamPerThread * sizeof(T)) Four {
    T at[kAdamPerThread];
};

template <typename T>
__device__ __forceinline__ void load_four(float (&to)[kAdamPerThread], const T* from) {
    const Four<T> four = *reinterpret_cast<const Four<T>*>(from);
#pragma unroll
    for (int i = 0; i < kAdamPerThread; ++i) {
        to[i] = to_float(four.at[i]);
    }
}

template <typename T>
__device__ __forceinline__ void store_four(T* to, const float (&from)[kAdamPerThread]) {
    Four<T> four;
#pragma unroll
    for (int i = 0; i < kAdamPerThread; ++i) {
        four.at[i] = from_float<T>(from[i]);
    }
    *reinterpret_cast<Four<T>*>(to) = four;
}

// What an AdamW is made of: `Parameter` of the tensor that is updated (float, if it is a master),
// `Gradient` of gradients and of the copy of a master.
template <typename ParameterT, typename StateT, bool kAmsgradT, typename GradientT = ParameterT>
struct Kind {
    using Parameter = ParameterT;
    using State = StateT;
    using Gradient = GradientT;
    static constexpr bool kAmsgrad = kAmsgradT;
    static constexpr bool kMaster = !std::is_same<ParameterT, GradientT>::value;
    static constexpr int kPointers = kFewestPointers + (kAmsgrad ? 1 : 0) + (kMaster ? 1 : 0);
};

template <typename K>
__device__ __forceinline__ void update_one(void* const (&tensor)[K::kPointers], std::uint64_t at,
                                           const AdamCoefficients& with) {
    auto* parameters = static_cast<typename K::Parameter*>(tensor[kParameter]) + at;
    auto* gradients = static_cast<typename K::Gradient*>(tensor[kGradient]) + at;
    auto* averages = static_cast<typename K::State*>(tensor[kAverage]) + at;
    auto* squares = static_cast<typename K::State*>(tensor[kSquare]) + at;
    float parameter = to_float(*parameters);
    float gradient = to_float(*gradients);
    float average = to_float(*averages);
    float square = to_float(*squares);
    if ((with.flags & kScaled) != 0) {
        gradient /= with.gradient_scale;
        *gradients = from_float<typename K::Gradient>(gradient);
    }
    if constexpr (K::kAmsgrad) {
        auto* most = static_cast<typename K::State*>(tensor[kMostSquare]) + at;
        float most_square = to_float(*most);
        adam_update(parameter, gradient, average, square, &most_square, with);
        *most = from_float<typename K::State>(most_square);
    } else {
        adam_update(parameter, gradient, average, square, nullptr, with);
    }
    *parameters = from_float<typename K::Parameter>(parameter);
    *averages = from_float<typename K::State>(average);
    *squares = from_float<typename K::State>(square);
    if constexpr (K::kMaster) {
        static_cast<typename K::Gradient*>(tensor[K::kPointers - 1])[at] =
            from_float<typename K::Gradient>(parameter);
    }
}

template <typename K>
__device__ __forceinline__ void update_four(void* const (&tensor)[K::kPointers], std::uint64_t at,
                                            const AdamCoefficients* coefficients) {
    auto* parameters = static_cast<typename K::Parameter*>(tensor[kParameter]) + at;
    auto* gradients = static_cast<typename K::Gradient*>(tensor[kGradient]) + at;
    auto* averages = static_cast<typename K::State*>(tensor[kAverage]) + at;
    auto* squares = static_cast<typename K::State*>(tensor[kSquare]) + at;
    float parameter[kAdamPerThread];
    float gradient[kAdamPerThread];
    float average[kAdamPerThread];
    float square[kAdamPerThread];
    load_four(parameter, parameters);
    load_four(gradient, gradients);
    load_four(average, averages);
    load_four(square, squares);
    [[maybe_unused]] float most_square[kAdamPerThread];
    if constexpr (K::kAmsgrad) {
        load_four(most_square, static_cast<const typename K::State*>(tensor[kMostSquare]) + at);
    }
    const AdamCoefficients with = *coefficients;  // on its way beside the elements
    if ((with.flags & kSkipped) != 0) {
        return;
    }
    if ((with.flags & kScaled) != 0) {
#pragma unroll
        for (int i = 0; i < kAdamPerThread; ++i) {
            gradient[i] /= with.gradient_scale;
        }
        store_four(gradients, gradient);
    }
#pragma unroll
    for (int i = 0; i < kAdamPerThread; ++i) {
        adam_update(parameter[i], gradient[i], average[i], square[i],
                    K::kAmsgrad ? &most_square[i] : nullptr, with);
    }
    store_four(parameters, parameter);
    store_four(averages, average);
    store_four(squares, square);
    if constexpr (K::kAmsgrad) {
        store_four(static_cast<typename K::State*>(tensor[kMostSquare]) + at, most_square);
    }
    if constexpr (K::kMaster) {
        store_four(static_cast<typename K::Gradient*>(tensor[K::kPointers - 1]) + at, parameter);
    }
}

// The `elements` (at most kAdamBlock) of a tensor from `from` on.
template <typename K>
__device__ __forceinline__ void update_block(void* const (&tensor)[K::kPointers], std::uint64_t from,
                                             std::uint32_t elements, bool aligned,
                                             const AdamCoefficients* coefficients) {
    const std::uint32_t first = threadIdx.x * kAdamPerThread;
    if (aligned && first + kAdamPerThread <= elements) {
        update_four<K>(tensor, from + first, coefficients);
        return;
    }
    const AdamCoefficients with = *coefficients;
    if ((with.flags & kSkipped) != 0) {
        return;
    }
    if (aligned) {  // the tensor's last one to three elements
        for (std::uint32_t i = first; i < elements; ++i) {
            update_one<K>(tensor, from + i, with);
        }
    } else {
        for (std::uint32_t i = threadIdx.x; i < elements; i += kAdamThreads) {
            update_one<K>(tensor, from + i, with);
        }
    }
}

template <typename K>
__device__ __forceinline__ void update_inline(const InlineTable<K::kPointers>& table,
                                              const AdamCoefficients* coefficients) {
    constexpr int kMost = InlineTable<K::kPointers>::kMost;
    constexpr int kHighestStep = 64;
    static_assert(kMost < 2 * kHighestStep, "the search would not reach all tensors");
    int index = 0;
#pragma unroll
    for (int step = kHighestStep; step > 0; step /= 2) {
        const int next = index + step;
        if (next < table.count && table.first_block[next] <= blockIdx.x) {
            index = next;
        }
    }
    const std::uint32_t end = index + 1 < table.count ? table.first_block[index + 1] : gridDim.x;
    void* tensor[K::kPointers];
#pragma unroll
    for (int i = 0; i < K::kPointers; ++i) {
        tensor[i] = table.pointers[i][index];
    }
    const std::uint16_t tail = table.tail[index];
    update_block<K>(tensor, std::uint64_t{blockIdx.x - table.first_block[index]} * kAdamBlock,
                    blockIdx.x + 1 == end ? tail & kTailMask : kAdamBlock, (tail & kUnaligned) == 0,
                    coefficients);
}

template <typename K>
__device__ __forceinline__ void update_listed(const DeviceRecord<K::kPointers>* records,
                                              const std::uint32_t* tensor_of_block,
                                              const AdamCoefficients* coefficients) {
    const DeviceRecord<K::kPointers>& record = records[tensor_of_block[blockIdx.x]];
    void* tensor[K::kPointers];
#pragma unroll
    for (int i = 0; i < K::kPointers; ++i) {
        tensor[i] = record.pointers[i];
    }
    update_block<K>(tensor, std::uint64_t{blockIdx.x - record.first_block} * kAdamBlock,
                    blockIdx.x == record.last_block ? record.tail & kTailMask : kAdamBlock,
                    (record.tail & kUnaligned) == 0, coefficients);
}

}  // namespace

// One thread. Notes the step as done, unless a gradient was infinite, and makes the coefficients.
extern "C" __global__ void cudiag_adam_prepare(const cudiag::AdamPreparation given) {
    const bool skipped = given.found_inf != nullptr && *given.found_inf == 1;
    const float step = *given.step + (skipped ? 0 : 1);
    AdamCoefficients with = adam_coefficients(given, step);
    *given.step = step;
    with.flags |= skipped ? kSkipped : 0;
    if (given.gradient_scale != nullptr) {
        with.flags |= kScaled;
        with.gradient_scale = *given.gradient_scale;
    }
    *given.coefficients = with;
}

#define CUDIAG_ADAM(name, ...)                                                                    \
    extern "C" __global__ void __launch_bounds__(cudiag::kAdamThreads) name##_inline(             \
        const __grid_constant__ InlineTable<Kind<__VA_ARGS__>::kPointers> table,                  \
        const AdamCoefficients* coefficients) {                                                   \
        update_inline<Kind<__VA_ARGS__>>(table, coefficients);                                    \
    }                                                                                             \
    extern "C" __global__ void __launch_bounds__(cudiag::kAdamThreads) name##_listed(             \
        const DeviceRecord<Kind<__VA_ARGS__>::kPointers>* records,                                \
        const std::uint32_t* tensor_of_block, const AdamCoefficients* coefficients) {             \
        update_listed<Kind<__VA_ARGS__>>(records, tensor_of_block, coefficients);                 \
    }

CUDIAG_ADAM(cudiag_adam_float32_float32, float, float, false)
CUDIAG_ADAM(cudiag_adam_float32_float32_amsgrad, float, float, true)
CUDIAG_ADAM(cudiag_adam_bfloat16_bfloat16, __nv_bfloat16, __nv_bfloat16, false)
CUDIAG_ADAM(cudiag_adam_bfloat16_bfloat16_amsgrad, __nv_bfloat16, __nv_bfloat16, true)
CUDIAG_ADAM(cudiag_adam_float16_float16, __half, __half, false)
CUDIAG_ADAM(cudiag_adam_float16_float16_amsgrad, __half, __half, true)
CUDIAG_ADAM(cudiag_adam_bfloat16_float32_master, float, float, false, __nv_bfloat16)
CUDIAG_ADAM(cudiag_adam_bfloat16_float32_master_amsgrad, float, float, true, __nv_bfloat16)
CUDIAG_ADAM(cudiag_adam_float16_float32_master, float, float, false, __half)
CUDIAG_ADAM(cudiag_adam_float16_float32_master_amsgrad, float, float, true, __half)

// The ceiling: one float4 a thread, as the kernels above move them. `count` of float4.
extern "C" __global__ void __launch_bounds__(cudiag::kAdamThreads)
    cudiag_copy(float4* to, const float4* from, std::uint64_t count) {
    const std::uint64_t at = std::uint64_t{blockIdx.x} * kAdamThreads + threadIdx.x;
    if (at < count) {
        to[at] = from[at];
    }
}
