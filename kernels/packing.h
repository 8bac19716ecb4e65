// From a list of tensors to the tables of the kernels: pure, without a GPU.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace cudiag {

// One tensor of an AdamW step: device addresses, 0 for what its kind has not.
struct AdamTensor {
    std::uint64_t parameter = 0;  // the master, where there is one
    std::uint64_t gradient = 0;
    std::uint64_t average = 0;
    std::uint64_t square = 0;
    std::uint64_t most_square = 0;  // AMSGrad
    std::uint64_t low = 0;          // the copy of a master in 16 bits
    std::uint64_t elements = 0;

    bool operator==(const AdamTensor&) const = default;
};

enum class Dtype { float32, bfloat16, float16 };

std::size_t bytes_of(Dtype dtype);  // of an element

// What an AdamW moves. With a master the parameters that are updated and the state are float32, and
// gradients and a copy of the parameters are of `dtype`; else all are of `dtype`.
struct AdamKind {
    Dtype dtype = Dtype::float32;
    bool master = false;
    bool amsgrad = false;

    bool operator==(const AdamKind&) const = default;
};

// Bytes that a step reads and writes for each element, gradients that are not rescaled.
std::size_t bytes_per_element(const AdamKind& kind);

// One launch for all tensors: within the kernel's parameters if they fit there, else in device
// memory.
struct PackedAdam {
    std::vector<std::byte> table;                // InlineTable or, if `listed`, DeviceRecords
    std::vector<std::uint32_t> tensor_of_block;  // if `listed`
    bool listed = false;
    std::uint32_t blocks = 0;  // 0: nothing to be done, all tensors are empty
};

// Empty tensors are left out. Throws std::invalid_argument for a tensor that lacks what its kind
// has, and for more blocks than a grid has (2^31 - 1, 2e12 elements).
PackedAdam pack_adam(const std::vector<AdamTensor>& tensors, const AdamKind& kind);

// The launches of torch's fused AdamW for these tensors.
struct PackedChunks {
    std::vector<std::byte> table;  // Small- or LargeChunkedTable; or StepTable
    std::uint32_t blocks = 0;
};

// `steps`: addresses of the tensors' step counts (device, float). `large`: as torch built for CUDA
// 13 does. Empty tensors are left out.
std::vector<PackedChunks> pack_chunks(const std::vector<AdamTensor>& tensors,
                                      const std::vector<std::uint64_t>& steps, bool large);

// The launches by which torch counts the steps up.
std::vector<PackedChunks> pack_steps(const std::vector<std::uint64_t>& steps, bool large);

}  // namespace cudiag
