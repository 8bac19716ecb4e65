// AdamW as torch's fused one launches it: chunks of 65536 elements, 512 threads each, so and so many
// chunks a launch. What torch would take on a card where it is not running is measured with this, so
// it is made to cost the same, not to be fast; what it computes is the same as well.
// Source: torch's MultiTensorApply.cuh (sizes of the tables) and fused_adam_utils.cuh (arithmetic: in
// double up to torch 2.10, in float from 2.11 on), as shipped in the wheels of torch 2.9.1 and 2.13.
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include "kernels/chunked_table.h"

namespace {

using namespace cudiag;

template <typename T>
struct alignas(4 * sizeof(T)) Four {
    T at[4];
};

__device__ __forceinline__ float widened(float value) { return value; }
__device__ __forceinline__ float widened(__half value) { return __half2float(value); }
__device__ __forceinline__ float widened(__nv_bfloat16 value) { return __bfloat162float(value); }
__device__ __forceinline__ void narrow(float& to, float value) { to = value; }
__device__ __forceinline__ void narrow(__half& to, float value) { to = __float2half_rn(value); }
__device__ __forceinline__ void narrow(__nv_bfloat16& to, float value) {
    to = __float2bfloat16_rn(value);
}

// `Math` is double or float; what is held between its operations is float.
template <typename Math>
__device__ __forceinline__ void update(float& parameter, float gradient, float& average,
                                       float& square, const ChunkedOptions& with, Math bias1,
                                       Math bias2_root) {
    const auto beta1 = static_cast<Math>(with.beta1);
    const auto beta2 = static_cast<Math>(with.beta2);
    const auto lr = static_cast<Math>(with.lr);
    const auto decay = static_cast<Math>(with.weight_decay);
    if (with.weight_decay != 0) {
        parameter = static_cast<float>(parameter - lr * decay * parameter);
    }
    average = static_cast<float>(beta1 * average + (1 - beta1) * gradient);
    square = static_cast<float>(beta2 * square + (1 - beta2) * gradient * gradient);
    const auto step_size = static_cast<float>(lr / bias1);
    const auto denominator = static_cast<float>(sqrtf(square) / bias2_root + static_cast<Math>(with.epsilon));
    parameter -= step_size * average / denominator;
}

template <typename T, typename Math, typename Table>
__device__ __forceinline__ void update_chunk(const Table& table, const ChunkedOptions& with) {
    const int tensor = table.block_to_tensor[blockIdx.x];
    const std::int64_t chunk = table.block_to_chunk[blockIdx.x];
    const std::int64_t elements = table.elements[tensor] - chunk * kChunk;
    const auto step = static_cast<Math>(*table.steps[tensor]);
    const Math bias1 = 1 - pow(static_cast<Math>(with.beta1), step);
    const Math bias2_root = sqrt(1 - pow(static_cast<Math>(with.beta2), step));
    T* at[4];
    bool aligned = elements % 4 == 0;
#pragma unroll
    for (int i = 0; i < 4; ++i) {
        at[i] = static_cast<T*>(table.pointers[i][tensor]) + chunk * kChunk;
        aligned = aligned && reinterpret_cast<std::uintptr_t>(at[i]) % sizeof(Four<T>) == 0;
    }
    Four<T> values[4];
    for (std::int64_t i = threadIdx.x; aligned && i * 4 < elements && i * 4 < kChunk; i += blockDim.x) {
#pragma unroll
        for (int role = 0; role < 4; ++role) {
            values[role] = reinterpret_cast<Four<T>*>(at[role])[i];
        }
#pragma unroll
        for (int k = 0; k < 4; ++k) {
            float parameter = widened(values[0].at[k]);
            float average = widened(values[2].at[k]);
            float square = widened(values[3].at[k]);
            update<Math>(parameter, widened(values[1].at[k]), average, square, with, bias1, bias2_root);
            narrow(values[0].at[k], parameter);
            narrow(values[2].at[k], average);
            narrow(values[3].at[k], square);
        }
#pragma unroll
        for (int role = 0; role < 4; ++role) {
            if (role != 1) {
                reinterpret_cast<Four<T>*>(at[role])[i] = values[role];
            }
        }
    }
    for (std::int64_t i = threadIdx.x; !aligned && i < elements && i < kChunk; i += blockDim.x) {
        float parameter = widened(at[0][i]);
        float average = widened(at[2][i]);
        float square = widened(at[3][i]);
        update<Math>(parameter, widened(at[1][i]), average, square, with, bias1, bias2_root);
        narrow(at[0][i], parameter);
        narrow(at[2][i], average);
        narrow(at[3][i], square);
    }
}

template <typename Table>
__device__ __forceinline__ void count_step(const Table& table) {
    float* step = table.steps[table.block_to_tensor[blockIdx.x]];
    if (threadIdx.x == 0) {
        *step += 1;
    }
}

}  // namespace

#define CUDIAG_CHUNKED(suffix, T, Math, Table)                                               \
    extern "C" __global__ void __launch_bounds__(kChunkThreads) cudiag_chunked_##suffix(     \
        const __grid_constant__ Table table, const __grid_constant__ ChunkedOptions with) {  \
        update_chunk<T, Math>(table, with);                                                  \
    }
#define CUDIAG_CHUNKED_ALL(suffix, Table)                                            \
    CUDIAG_CHUNKED(float32_double_##suffix, float, double, Table)                    \
    CUDIAG_CHUNKED(float32_float_##suffix, float, float, Table)                      \
    CUDIAG_CHUNKED(bfloat16_double_##suffix, __nv_bfloat16, double, Table)           \
    CUDIAG_CHUNKED(bfloat16_float_##suffix, __nv_bfloat16, float, Table)             \
    CUDIAG_CHUNKED(float16_double_##suffix, __half, double, Table)                   \
    CUDIAG_CHUNKED(float16_float_##suffix, __half, float, Table)

CUDIAG_CHUNKED_ALL(small, cudiag::SmallChunkedTable)

extern "C" __global__ void __launch_bounds__(kChunkThreads)
    cudiag_count_steps_small(const __grid_constant__ cudiag::SmallStepTable table) {
    count_step(table);
}

// 32 KiB of parameters: CUDA 12.1 and sm_70.
#if __CUDACC_VER_MAJOR__ > 12 || (__CUDACC_VER_MAJOR__ == 12 && __CUDACC_VER_MINOR__ >= 1)
CUDIAG_CHUNKED_ALL(large, cudiag::LargeChunkedTable)

extern "C" __global__ void __launch_bounds__(kChunkThreads)
    cudiag_count_steps_large(const __grid_constant__ cudiag::LargeStepTable table) {
    count_step(table);
}
#endif
