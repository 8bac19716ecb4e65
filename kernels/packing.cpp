#include "kernels/packing.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <limits>
#include <memory>
#include <stdexcept>

#include "kernels/adam_table.h"
#include "kernels/chunked_table.h"

namespace cudiag {
namespace {

constexpr std::size_t kMostPointers = 6;
constexpr std::uint64_t kMostBlocks = std::numeric_limits<std::int32_t>::max();

struct Pointers {
    std::array<std::uint64_t, kMostPointers> at{};
    std::array<std::size_t, kMostPointers> bytes{};  // of an element
    std::size_t count = 0;

    void add(std::uint64_t address, std::size_t element_bytes) {
        at[count] = address;
        bytes[count] = element_bytes;
        ++count;
    }
};

// In the order of the table.
Pointers pointers_of(const AdamTensor& tensor, const AdamKind& kind) {
    const std::size_t low = bytes_of(kind.dtype);
    const std::size_t high = kind.master ? sizeof(float) : low;
    Pointers pointers;
    pointers.add(tensor.parameter, high);
    pointers.add(tensor.gradient, low);
    pointers.add(tensor.average, high);
    pointers.add(tensor.square, high);
    if (kind.amsgrad) {
        pointers.add(tensor.most_square, high);
    }
    if (kind.master) {
        pointers.add(tensor.low, low);
    }
    return pointers;
}

bool is_aligned(const Pointers& pointers) {
    for (std::size_t i = 0; i < pointers.count; ++i) {
        if (pointers.at[i] % (pointers.bytes[i] * kAdamPerThread) != 0) {
            return false;
        }
    }
    return true;
}

// What a tensor takes of the grid.
struct Share {
    Pointers pointers;
    std::uint32_t first_block = 0;
    std::uint32_t blocks = 0;
    std::uint16_t tail = 0;
};

std::vector<Share> shares_of(const std::vector<AdamTensor>& tensors, const AdamKind& kind) {
    std::vector<Share> shares;
    std::uint64_t blocks = 0;
    for (const AdamTensor& tensor : tensors) {
        if (tensor.elements == 0) {
            continue;
        }
        Share share;
        share.pointers = pointers_of(tensor, kind);
        const auto end =
            share.pointers.at.begin() + static_cast<std::ptrdiff_t>(share.pointers.count);
        if (std::find(share.pointers.at.begin(), end, 0U) != end) {
            throw std::invalid_argument("a tensor lacks one of its arrays");
        }
        const std::uint64_t own = (tensor.elements - 1) / kAdamBlock + 1;
        if (blocks + own > kMostBlocks) {
            throw std::invalid_argument("more elements than a grid has blocks for");
        }
        share.first_block = static_cast<std::uint32_t>(blocks);
        share.blocks = static_cast<std::uint32_t>(own);
        share.tail = static_cast<std::uint16_t>(tensor.elements - (own - 1) * kAdamBlock);
        if (!is_aligned(share.pointers)) {
            share.tail = static_cast<std::uint16_t>(share.tail | kUnaligned);
        }
        blocks += own;
        shares.push_back(share);
    }
    return shares;
}

void* as_pointer(std::uint64_t address) {
    void* pointer = nullptr;
    static_assert(sizeof pointer == sizeof address);
    std::memcpy(&pointer, &address, sizeof pointer);  // of the device: never followed here
    return pointer;
}

template <typename T>
std::vector<std::byte> bytes_from(const T* objects, std::size_t count) {
    std::vector<std::byte> bytes(sizeof(T) * count);
    if (count != 0) {
        std::memcpy(bytes.data(), objects, bytes.size());
    }
    return bytes;
}

template <int kPointers>
PackedAdam pack(const std::vector<Share>& shares) {
    using Table = InlineTable<kPointers>;
    PackedAdam packed;
    if (shares.empty()) {
        return packed;
    }
    packed.blocks = shares.back().first_block + shares.back().blocks;
    packed.listed = shares.size() > static_cast<std::size_t>(Table::kMost);
    if (!packed.listed) {
        Table table{};
        table.count = static_cast<std::uint16_t>(shares.size());
        for (std::size_t i = 0; i < shares.size(); ++i) {
            for (std::size_t role = 0; role < kPointers; ++role) {
                table.pointers[role][i] = as_pointer(shares[i].pointers.at[role]);
            }
            table.first_block[i] = shares[i].first_block;
            table.tail[i] = shares[i].tail;
        }
        packed.table = bytes_from(&table, 1);
        return packed;
    }
    std::vector<DeviceRecord<kPointers>> records(shares.size());
    packed.tensor_of_block.reserve(packed.blocks);
    for (std::size_t i = 0; i < shares.size(); ++i) {
        DeviceRecord<kPointers>& record = records[i];
        for (std::size_t role = 0; role < kPointers; ++role) {
            record.pointers[role] = as_pointer(shares[i].pointers.at[role]);
        }
        record.first_block = shares[i].first_block;
        record.last_block = shares[i].first_block + shares[i].blocks - 1;
        record.tail = shares[i].tail;
        packed.tensor_of_block.insert(packed.tensor_of_block.end(), shares[i].blocks,
                                      static_cast<std::uint32_t>(i));
    }
    packed.table = bytes_from(records.data(), records.size());
    return packed;
}

// A launch that is being filled: torch ends it when its blocks are full, or its tensors are and the
// last one is complete; a tensor that was cut goes on as the first of the next launch.
template <typename Table>
class Filling {
  public:
    // Begins a tensor; `set` writes what the table says of it at an index.
    template <typename Set>
    void add(std::int64_t elements, Set set) {
        const std::int64_t chunks = (elements + kChunk - 1) / kChunk;
        set(*table_, tensors_);
        ++tensors_;
        for (std::int64_t chunk = 0; chunk < chunks; ++chunk) {
            table_->block_to_tensor[blocks_] = index_of(tensors_ - 1);
            table_->block_to_chunk[blocks_] = static_cast<std::int32_t>(chunk);
            ++blocks_;
            const bool complete = chunk == chunks - 1;
            if (blocks_ == Table::kMostBlocks || (complete && tensors_ == Table::kMostTensors)) {
                end();
                if (!complete) {
                    set(*table_, 0);
                    tensors_ = 1;
                }
            }
        }
    }

    std::vector<PackedChunks> finish() {
        if (blocks_ != 0) {
            end();
        }
        return std::move(launches_);
    }

  private:
    static auto index_of(int tensor) {
        return static_cast<std::remove_reference_t<decltype(Table{}.block_to_tensor[0])>>(tensor);
    }

    void end() {
        launches_.push_back(
            {.table = bytes_from(table_.get(), 1), .blocks = static_cast<std::uint32_t>(blocks_)});
        blocks_ = 0;
        tensors_ = 0;
    }

    std::unique_ptr<Table> table_ = std::make_unique<Table>();
    int blocks_ = 0;
    int tensors_ = 0;
    std::vector<PackedChunks> launches_;
};

float* step_pointer(std::uint64_t address) {
    return static_cast<float*>(as_pointer(address));
}

template <typename Table>
std::vector<PackedChunks> chunks(const std::vector<AdamTensor>& tensors,
                                 const std::vector<std::uint64_t>& steps) {
    Filling<Table> filling;
    for (std::size_t i = 0; i < tensors.size(); ++i) {
        const AdamTensor& tensor = tensors[i];
        if (tensor.elements == 0) {
            continue;
        }
        const auto elements = static_cast<std::int64_t>(tensor.elements);
        filling.add(elements, [&](Table& table, int at) {
            table.pointers[kParameter][at] = as_pointer(tensor.parameter);
            table.pointers[kGradient][at] = as_pointer(tensor.gradient);
            table.pointers[kAverage][at] = as_pointer(tensor.average);
            table.pointers[kSquare][at] = as_pointer(tensor.square);
            table.elements[at] = elements;
            table.steps[at] = step_pointer(steps.at(i));
        });
    }
    return filling.finish();
}

template <typename Table>
std::vector<PackedChunks> counts(const std::vector<std::uint64_t>& steps) {
    Filling<Table> filling;
    for (const std::uint64_t step : steps) {
        filling.add(1, [&](Table& table, int at) {
            table.steps[at] = step_pointer(step);
            table.elements[at] = 1;
        });
    }
    return filling.finish();
}

}  // namespace

std::size_t bytes_of(Dtype dtype) {
    return dtype == Dtype::float32 ? sizeof(float) : sizeof(std::uint16_t);
}

std::size_t bytes_per_element(const AdamKind& kind) {
    const std::size_t low = bytes_of(kind.dtype);
    const std::size_t high = kind.master ? sizeof(float) : low;
    // Read: parameter, gradient, average, square. Written: all but the gradient.
    return 6 * high + low + (kind.amsgrad ? 2 * high : 0) + (kind.master ? low : 0);
}

PackedAdam pack_adam(const std::vector<AdamTensor>& tensors, const AdamKind& kind) {
    if (kind.master && kind.dtype == Dtype::float32) {
        throw std::invalid_argument("float32 needs no master");
    }
    const std::vector<Share> shares = shares_of(tensors, kind);
    switch (kFewestPointers + (kind.amsgrad ? 1 : 0) + (kind.master ? 1 : 0)) {
        case kFewestPointers:
            return pack<kFewestPointers>(shares);
        case kFewestPointers + 1:
            return pack<kFewestPointers + 1>(shares);
        default:
            return pack<kFewestPointers + 2>(shares);
    }
}

std::vector<PackedChunks> pack_chunks(const std::vector<AdamTensor>& tensors,
                                      const std::vector<std::uint64_t>& steps, bool large) {
    return large ? chunks<LargeChunkedTable>(tensors, steps)
                 : chunks<SmallChunkedTable>(tensors, steps);
}

std::vector<PackedChunks> pack_steps(const std::vector<std::uint64_t>& steps, bool large) {
    return large ? counts<LargeStepTable>(steps) : counts<SmallStepTable>(steps);
}

}  // namespace cudiag
