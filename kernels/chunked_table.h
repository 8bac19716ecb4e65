// The tables of kernels/chunked_adam.cu, with the sizes of torch's: what a launch of its fused
// AdamW takes. Read by nvcc (CUDA 11.8 on) as C++17 and by the host compiler.
#pragma once

#include <cstddef>
#include <cstdint>

namespace cudiag {

constexpr int kChunkThreads = 512;
constexpr std::int64_t kChunk = 65536;  // elements of a block

template <int kTensors, int kBlocks, typename Index>
struct ChunkedTable {
    static constexpr int kMostTensors = kTensors;
    static constexpr int kMostBlocks = kBlocks;
    void* pointers[4][kTensors];  // parameter, gradient, average, square
    std::int64_t elements[kTensors];
    float* steps[kTensors];
    Index block_to_tensor[kBlocks];
    std::int32_t block_to_chunk[kBlocks];
};

// The launch by which torch adds 1 to the step counts of the tensors: a block each.
template <int kTensors, int kBlocks, typename Index>
struct StepTable {
    static constexpr int kMostTensors = kTensors;
    static constexpr int kMostBlocks = kBlocks;
    float* steps[kTensors];
    std::int64_t elements[kTensors];
    Index block_to_tensor[kBlocks];
    std::int32_t block_to_chunk[kBlocks];
};

// torch built for CUDA 11 or 12: 4 KiB of parameters.
using SmallChunkedTable = ChunkedTable<36, 320, std::uint8_t>;
using SmallStepTable = StepTable<110, 320, std::uint8_t>;
// torch built for CUDA 13: 32 KiB.
using LargeChunkedTable = ChunkedTable<252, 2240, std::uint16_t>;
using LargeStepTable = StepTable<770, 2240, std::uint16_t>;

struct ChunkedOptions {
    double lr;
    double beta1;
    double beta2;
    double weight_decay;
    double epsilon;
};

static_assert(sizeof(SmallChunkedTable) + sizeof(ChunkedOptions) <= 4096);
static_assert(sizeof(SmallStepTable) <= 4096);
static_assert(sizeof(LargeChunkedTable) + sizeof(ChunkedOptions) <= 32764);
static_assert(sizeof(LargeStepTable) <= 32764);

}  // namespace cudiag
