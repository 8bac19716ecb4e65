#include "kernels/adam.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstring>

#include "kernels/chunked_table.h"

namespace cudiag {
namespace {

void launch(const Driver& driver, CuFunction function, std::uint32_t blocks, int threads,
            CuStream stream, void** arguments) {
    CUDIAG_GPU(driver, cuLaunchKernel, function, blocks, 1, 1, static_cast<unsigned>(threads), 1, 1,
               0, stream, arguments, nullptr);
}

std::string kernel_name(const AdamKind& kind) {
    return fmt::format("cudiag_adam_{}_{}{}{}", name_of(kind.dtype),
                       name_of(kind.master ? Dtype::float32 : kind.dtype),
                       kind.master ? "_master" : "", kind.amsgrad ? "_amsgrad" : "");
}

}  // namespace

const char* name_of(Dtype dtype) {
    switch (dtype) {
        case Dtype::bfloat16:
            return "bfloat16";
        case Dtype::float16:
            return "float16";
        default:
            return "float32";
    }
}

AdamW::AdamW(const Driver& driver, const void* image, const AdamKind& kind)
    : driver_{driver},
      kind_{kind},
      module_{load_module(driver, image)},
      prepare_{function_of(driver, module_, "cudiag_adam_prepare")},
      inline_{function_of(driver, module_, kernel_name(kind) + "_inline")},
      listed_{function_of(driver, module_, kernel_name(kind) + "_listed")},
      coefficients_{allocate(driver, sizeof(AdamCoefficients))},
      sent_{make_event(driver)} {}

// Sends the table of a step with many tensors.
void AdamW::send(CuStream stream) {
    const std::size_t blocks_bytes = packed_.tensor_of_block.size() * sizeof(std::uint32_t);
    const std::size_t bytes = packed_.table.size() + blocks_bytes;
    CUDIAG_GPU(driver_, cuEventSynchronize, sent_.get());  // what was sent before has left staging_
    if (bytes > table_bytes_) {
        CUDIAG_GPU(driver_, cuStreamSynchronize, stream);  // kernels that still read the old table
        table_ = allocate(driver_, bytes);
        staging_ = allocate_host(driver_, bytes);
        table_bytes_ = bytes;
    }
    auto* staging = static_cast<std::byte*>(staging_.get());
    std::memcpy(staging, packed_.table.data(), packed_.table.size());
    std::memcpy(staging + packed_.table.size(), packed_.tensor_of_block.data(), blocks_bytes);
    CUDIAG_GPU(driver_, cuMemcpyHtoDAsync_v2, table_.get(), staging, bytes, stream);
    CUDIAG_GPU(driver_, cuEventRecord, sent_.get(), stream);
}

void AdamW::step(const std::vector<AdamTensor>& tensors, AdamPreparation options, CuStream stream) {
    if (tensors != tensors_) {
        packed_ = pack_adam(tensors, kind_);
        tensors_ = tensors;
        if (packed_.listed) {
            send(stream);
        }
    }
    CuPointer coefficients = coefficients_.get();
    std::memcpy(&options.coefficients, &coefficients, sizeof coefficients);
    void* prepare[] = {&options};
    launch(driver_, prepare_, 1, 1, stream, prepare);
    if (packed_.blocks == 0) {
        return;
    }
    CuPointer records = table_.get();
    CuPointer tensor_of_block = records + packed_.table.size();
    void* within[] = {packed_.table.data(), &coefficients};
    void* listed[] = {&records, &tensor_of_block, &coefficients};
    launch(driver_, packed_.listed ? listed_ : inline_, packed_.blocks, kAdamThreads, stream,
           packed_.listed ? listed : within);
}

ChunkedAdamW::ChunkedAdamW(const Driver& driver, const void* image, const ChunkedKind& kind)
    : driver_{driver},
      kind_{kind},
      module_{load_module(driver, image)},
      count_{
          function_of(driver, module_,
                      kind.large_tables ? "cudiag_count_steps_large" : "cudiag_count_steps_small")},
      update_{function_of(driver, module_,
                          fmt::format("cudiag_chunked_{}_{}_{}", name_of(kind.dtype),
                                      kind.double_math ? "double" : "float",
                                      kind.large_tables ? "large" : "small"))} {}

void ChunkedAdamW::step(const std::vector<AdamTensor>& tensors,
                        const std::vector<std::uint64_t>& steps, const AdamPreparation& options,
                        CuStream stream) {
    ChunkedOptions with{.lr = options.lr,
                        .beta1 = options.beta1,
                        .beta2 = options.beta2,
                        .weight_decay = options.weight_decay,
                        .epsilon = options.epsilon};
    if (tensors != tensors_ || steps != steps_) {
        counts_ = pack_steps(steps, kind_.large_tables);
        chunks_ = pack_chunks(tensors, steps, kind_.large_tables);
        tensors_ = tensors;
        steps_ = steps;
    }
    for (PackedChunks& counts : counts_) {
        void* arguments[] = {counts.table.data()};
        launch(driver_, count_, counts.blocks, kChunkThreads, stream, arguments);
    }
    for (PackedChunks& chunks : chunks_) {
        void* arguments[] = {chunks.table.data(), &with};
        launch(driver_, update_, chunks.blocks, kChunkThreads, stream, arguments);
    }
}

}  // namespace cudiag
