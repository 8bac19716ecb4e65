// What the host writes and kernels/adam.cu reads: which tensors a launch covers, and with what
// numbers. Read by nvcc (CUDA 11.8 on) as C++17 and by the host compiler.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace cudiag {

// A block covers 1024 elements of one tensor, 4 a thread. On an H200 that is the fastest of what
// was tried: 6.56 ms for 1e9 elements; 512 threads 6.74, a grid of the size of the GPU 6.96
// (docs/benchmarks.md).
#ifdef CUDIAG_ADAM_THREADS
constexpr int kAdamThreads = CUDIAG_ADAM_THREADS;
#else
constexpr int kAdamThreads = 256;
#endif
constexpr int kAdamPerThread = 4;
constexpr std::uint32_t kAdamBlock = kAdamThreads * kAdamPerThread;

// Where the arrays of a tensor stand in a table. Behind them is, of a master in 32 bits, its copy
// in 16.
constexpr int kParameter = 0;
constexpr int kGradient = 1;
constexpr int kAverage = 2;
constexpr int kSquare = 3;
constexpr int kMostSquare = 4;

// Without AMSGrad's squares and a master's copy.
constexpr int kFewestPointers = 4;

// Flag in `tail`: a pointer is not aligned to four elements, so elements are moved one by one.
constexpr std::uint16_t kUnaligned = 0x8000;
constexpr std::uint16_t kTailMask = 0x7fff;
static_assert(kAdamBlock <= kTailMask);

// Parameters of a kernel may have 4096 bytes on every GPU and driver (32764 since CUDA 12.1).
constexpr std::size_t kParameterBytes = 4096;

// All tensors of a step, within the kernel's parameters. Offset 0: pointers, then first blocks,
// tails, count.
template <int kPointers>
struct InlineTable {
    static constexpr int kMost =
        static_cast<int>((kParameterBytes - 32) / (kPointers * sizeof(void*) +
                                                   sizeof(std::uint32_t) + sizeof(std::uint16_t)));
    void* pointers[kPointers][kMost];
    std::uint32_t first_block[kMost];  // ascending, from 0
    std::uint16_t tail[kMost];         // elements of the last block, 1 to kAdamBlock; kUnaligned
    std::uint16_t count;
};

static_assert(sizeof(InlineTable<4>) + sizeof(void*) <= kParameterBytes &&
              InlineTable<4>::kMost == 106);
static_assert(sizeof(InlineTable<5>) + sizeof(void*) <= kParameterBytes);
static_assert(sizeof(InlineTable<6>) + sizeof(void*) <= kParameterBytes);
static_assert(std::is_trivially_copyable<InlineTable<4>>::value, "it is passed by value");

// One tensor of a step that has more of them than an InlineTable takes, in device memory.
template <int kPointers>
struct DeviceRecord {
    void* pointers[kPointers];
    std::uint32_t first_block;
    std::uint32_t last_block;
    std::uint32_t tail;  // as in InlineTable
    std::uint32_t unused;
};

static_assert(sizeof(DeviceRecord<4>) == 48 && sizeof(DeviceRecord<6>) == 64);

// What of the options and of the step count goes into every element. Made on the device by
// cudiag_adam_prepare, since the step count and whether a gradient was infinite are known there.
struct AdamCoefficients {
    float step_size;   // lr / (1 - beta1^t)
    float bias2_sqrt;  // sqrt(1 - beta2^t)
    float epsilon;
    float beta1;  // with kFloatMath
    float beta2;
    float one_minus_beta1;  // without it
    float one_minus_beta2;
    float decay;           // lr * weight decay, where it is decoupled from the gradient; else 0
    float l2;              // weight decay that is added to the gradient; else 0
    float gradient_scale;  // gradients are divided by it, and stored so, with kScaled
    std::uint32_t flags;
};

// Flags of AdamCoefficients.
constexpr std::uint32_t kSkipped = 1;
constexpr std::uint32_t kScaled = 2;
constexpr std::uint32_t kMaximized = 4;
constexpr std::uint32_t kFloatMath = 8;

// The arguments of cudiag_adam_prepare. Numbers as the user gave them.
struct AdamPreparation {
    double lr;
    double beta1;
    double beta2;
    double epsilon;
    double weight_decay;
    float* step;                  // device: steps done; one more is noted unless it is skipped
    const float* gradient_scale;  // device, or null
    const float* found_inf;       // device: 1 has the step skipped; or null
    AdamCoefficients* coefficients;
    std::uint32_t decoupled;   // AdamW; else Adam's L2
    std::uint32_t maximized;   // against the gradient
    std::uint32_t float_math;  // betas rounded to float first, as torch does from 2.11 on
};

}  // namespace cudiag
