// Steps of AdamW on a GPU: our own kernels, and torch's way of launching. In the current context; a
// stepper is used by one thread, with one stream, and throws DriverError.
#pragma once

#include <string>
#include <vector>

#include "kernels/adam_table.h"
#include "kernels/driver.h"
#include "kernels/packing.h"

namespace cudiag {

// "float32", as torch writes it.
const char* name_of(Dtype dtype);

// One kernel for all tensors, and one before it that counts the step.
class AdamW {
  public:
    // `image`: of kernels/adam.cu. The driver must outlive this.
    AdamW(const Driver& driver, const void* image, const AdamKind& kind);

    // Queues a step. `coefficients` of the options is ours to set. Tables are packed and sent anew
    // only if the tensors differ from those of the step before.
    void step(const std::vector<AdamTensor>& tensors, AdamPreparation options, CuStream stream);

    // Kernels of a step.
    std::size_t launches() const { return packed_.blocks == 0 ? 1 : 2; }

  private:
    void send(CuStream stream);

    const Driver& driver_;
    AdamKind kind_;
    Module module_;
    CuFunction prepare_;
    CuFunction inline_;
    CuFunction listed_;
    Buffer coefficients_;
    std::vector<AdamTensor> tensors_;
    PackedAdam packed_;
    Event sent_;
    HostBuffer staging_;
    Buffer table_;
    std::size_t table_bytes_ = 0;  // room in staging_ and table_
};

// As torch's fused AdamW.
struct ChunkedKind {
    Dtype dtype = Dtype::float32;
    bool large_tables = false;
    bool double_math = false;
};

class ChunkedAdamW {
  public:
    // `image`: of kernels/chunked_adam.cu.
    ChunkedAdamW(const Driver& driver, const void* image, const ChunkedKind& kind);

    // Queues a step. `steps`: device addresses of a float for each tensor. Tables are packed anew
    // only if either differs from those of the step before.
    void step(const std::vector<AdamTensor>& tensors, const std::vector<std::uint64_t>& steps,
              const AdamPreparation& options, CuStream stream);

    std::size_t launches() const { return counts_.size() + chunks_.size(); }

  private:
    const Driver& driver_;
    ChunkedKind kind_;
    Module module_;
    CuFunction count_;
    CuFunction update_;
    std::vector<AdamTensor> tensors_;
    std::vector<std::uint64_t> steps_;
    std::vector<PackedChunks> counts_;
    std::vector<PackedChunks> chunks_;
};

}  // namespace cudiag
