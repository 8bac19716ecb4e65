#include "kernels/packing.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <numeric>
#include <stdexcept>

#include "kernels/adam_table.h"
#include "kernels/chunked_table.h"

namespace cudiag {
namespace {

constexpr AdamKind kFloat32{};

AdamTensor tensor(std::uint64_t elements, std::uint64_t address = 0x100000) {
    return {.parameter = address,
            .gradient = address + 0x1000000,
            .average = address + 0x2000000,
            .square = address + 0x3000000,
            .most_square = address + 0x4000000,
            .low = address + 0x5000000,
            .elements = elements};
}

template <typename Table>
Table table_of(const std::vector<std::byte>& bytes) {
    Table table{};
    EXPECT_EQ(bytes.size(), sizeof table);
    std::memcpy(&table, bytes.data(), std::min(bytes.size(), sizeof table));
    return table;
}

std::uint64_t address_of(const void* pointer) {
    return reinterpret_cast<std::uintptr_t>(pointer);
}

TEST(PackAdam, GivesEachTensorItsBlocksAndTheRestOfItsLastOne) {
    const PackedAdam packed = pack_adam(
        {tensor(1), tensor(kAdamBlock), tensor(kAdamBlock + 1), tensor(3 * kAdamBlock)}, kFloat32);
    EXPECT_FALSE(packed.listed);
    EXPECT_EQ(packed.blocks, 7U);
    const auto table = table_of<InlineTable<4>>(packed.table);
    ASSERT_EQ(table.count, 4);
    EXPECT_EQ(table.first_block[0], 0U);
    EXPECT_EQ(table.first_block[1], 1U);
    EXPECT_EQ(table.first_block[2], 2U);
    EXPECT_EQ(table.first_block[3], 4U);
    EXPECT_EQ(table.tail[0], 1U);
    EXPECT_EQ(table.tail[1], kAdamBlock);
    EXPECT_EQ(table.tail[2], 1U);
    EXPECT_EQ(table.tail[3], kAdamBlock);
}

TEST(PackAdam, KeepsThePointersInTheOrderOfTheirRoles) {
    const AdamKind kind{.dtype = Dtype::bfloat16, .master = true, .amsgrad = true};
    const auto table = table_of<InlineTable<6>>(pack_adam({tensor(8)}, kind).table);
    EXPECT_EQ(address_of(table.pointers[kParameter][0]), 0x100000U);
    EXPECT_EQ(address_of(table.pointers[kGradient][0]), 0x1100000U);
    EXPECT_EQ(address_of(table.pointers[kAverage][0]), 0x2100000U);
    EXPECT_EQ(address_of(table.pointers[kSquare][0]), 0x3100000U);
    EXPECT_EQ(address_of(table.pointers[kMostSquare][0]), 0x4100000U);
    EXPECT_EQ(address_of(table.pointers[5][0]), 0x5100000U);
}

TEST(PackAdam, PutsTheCopyBehindTheSquaresWithoutAmsgrad) {
    const AdamKind kind{.dtype = Dtype::float16, .master = true};
    const auto table = table_of<InlineTable<5>>(pack_adam({tensor(8)}, kind).table);
    EXPECT_EQ(address_of(table.pointers[4][0]), 0x5100000U);
}

TEST(PackAdam, LeavesOutEmptyTensors) {
    const PackedAdam packed = pack_adam({tensor(0), tensor(5), tensor(0)}, kFloat32);
    EXPECT_EQ(table_of<InlineTable<4>>(packed.table).count, 1);
    EXPECT_EQ(packed.blocks, 1U);
    const AdamTensor without_memory;
    EXPECT_EQ(pack_adam({without_memory}, kFloat32).blocks, 0U);
    EXPECT_EQ(pack_adam({}, kFloat32).blocks, 0U);
}

bool moved_one_by_one(const AdamTensor& one, const AdamKind& kind) {
    const PackedAdam packed = pack_adam({one}, kind);
    const std::uint16_t tail = kind.master ? table_of<InlineTable<5>>(packed.table).tail[0]
                                           : table_of<InlineTable<4>>(packed.table).tail[0];
    return (tail & kUnaligned) != 0;
}

TEST(PackAdam, MarksTensorsThatCannotBeMovedByFours) {
    EXPECT_FALSE(moved_one_by_one(tensor(8), kFloat32));
    for (auto role : {&AdamTensor::parameter, &AdamTensor::gradient, &AdamTensor::average,
                      &AdamTensor::square}) {
        AdamTensor shifted = tensor(8);
        shifted.*role += 8;  // two elements of float32, four of bfloat16
        EXPECT_TRUE(moved_one_by_one(shifted, kFloat32));
        EXPECT_FALSE(moved_one_by_one(shifted, {.dtype = Dtype::bfloat16}));
    }
    AdamTensor most = tensor(8);
    most.most_square += 4;  // not used by this kind
    EXPECT_FALSE(moved_one_by_one(most, kFloat32));
}

TEST(PackAdam, LooksAtEachArrayByItsOwnWidth) {
    const AdamKind master{.dtype = Dtype::bfloat16, .master = true};
    AdamTensor low = tensor(8);
    low.low += 8;
    EXPECT_FALSE(moved_one_by_one(low, master));
    low.low += 2;
    EXPECT_TRUE(moved_one_by_one(low, master));
    AdamTensor average = tensor(8);
    average.average += 8;
    EXPECT_TRUE(moved_one_by_one(average, master));
}

TEST(PackAdam, ListsTensorsThatDoNotFitIntoTheParameters) {
    constexpr std::size_t kMost = InlineTable<4>::kMost;
    EXPECT_FALSE(pack_adam(std::vector<AdamTensor>(kMost, tensor(5)), kFloat32).listed);
    std::vector<AdamTensor> many(kMost, tensor(5));
    many.push_back(tensor(2 * kAdamBlock + 3, 0x104));
    const PackedAdam packed = pack_adam(many, kFloat32);
    ASSERT_TRUE(packed.listed);
    EXPECT_EQ(packed.blocks, kMost + 3);
    ASSERT_EQ(packed.tensor_of_block.size(), packed.blocks);
    EXPECT_EQ(packed.tensor_of_block.front(), 0U);
    EXPECT_EQ(packed.tensor_of_block.back(), kMost);
    ASSERT_EQ(packed.table.size(), (kMost + 1) * sizeof(DeviceRecord<4>));
    DeviceRecord<4> last{};
    std::memcpy(&last, packed.table.data() + kMost * sizeof last, sizeof last);
    EXPECT_EQ(last.first_block, kMost);
    EXPECT_EQ(last.last_block, kMost + 2);
    EXPECT_EQ(last.tail, 3U | kUnaligned);
    EXPECT_EQ(address_of(last.pointers[kParameter]), 0x104U);
}

TEST(PackAdam, TakesMoreElementsThan32Bits) {
    const std::uint64_t elements = (std::uint64_t{1} << 33) + 1;
    const PackedAdam packed = pack_adam({tensor(elements), tensor(1)}, kFloat32);
    EXPECT_EQ(packed.blocks, elements / kAdamBlock + 2);
    EXPECT_EQ(table_of<InlineTable<4>>(packed.table).tail[0], 1);
}

TEST(PackAdam, RefusesWhatNoGridHasBlocksFor) {
    const std::uint64_t most = std::uint64_t{0x7fffffff} * kAdamBlock;
    EXPECT_EQ(pack_adam({tensor(most)}, kFloat32).blocks, 0x7fffffffU);
    EXPECT_THROW((void)pack_adam({tensor(most), tensor(1)}, kFloat32), std::invalid_argument);
}

TEST(PackAdam, RefusesATensorThatLacksAnArray) {
    AdamTensor lacking = tensor(4);
    lacking.most_square = 0;
    EXPECT_NO_THROW((void)pack_adam({lacking}, kFloat32));
    EXPECT_THROW((void)pack_adam({lacking}, {.amsgrad = true}), std::invalid_argument);
    EXPECT_THROW((void)pack_adam({tensor(4)}, {.dtype = Dtype::float32, .master = true}),
                 std::invalid_argument);
}

TEST(PackAdam, CountsTheBytesOfAStep) {
    EXPECT_EQ(bytes_per_element(kFloat32), 28U);
    EXPECT_EQ(bytes_per_element({.amsgrad = true}), 36U);
    EXPECT_EQ(bytes_per_element({.dtype = Dtype::bfloat16}), 14U);
    EXPECT_EQ(bytes_per_element({.dtype = Dtype::float16, .master = true}), 28U);
}

// What launches must hold, whatever the sizes: every chunk of every tensor once, within the limits.
template <typename Table>
void expect_every_chunk_once(const std::vector<std::uint64_t>& sizes, bool large) {
    std::vector<AdamTensor> tensors;
    std::vector<std::uint64_t> steps;
    std::vector<std::vector<int>> seen;
    for (std::size_t i = 0; i < sizes.size(); ++i) {
        tensors.push_back(tensor(sizes[i], 0x1000 * (i + 1)));
        steps.push_back(0x10 * (i + 1));
        seen.emplace_back((sizes[i] + kChunk - 1) / kChunk);
    }
    for (const PackedChunks& launch : pack_chunks(tensors, steps, large)) {
        const auto table = table_of<Table>(launch.table);
        ASSERT_GT(launch.blocks, 0U);
        ASSERT_LE(launch.blocks, static_cast<unsigned>(Table::kMostBlocks));
        for (unsigned block = 0; block < launch.blocks; ++block) {
            const int at = table.block_to_tensor[block];
            ASSERT_LT(at, Table::kMostTensors);
            const std::size_t which = address_of(table.pointers[kParameter][at]) / 0x1000 - 1;
            EXPECT_EQ(address_of(table.steps[at]), 0x10 * (which + 1));
            EXPECT_EQ(static_cast<std::uint64_t>(table.elements[at]), sizes[which]);
            ++seen[which].at(static_cast<std::size_t>(table.block_to_chunk[block]));
        }
    }
    for (const auto& chunks : seen) {
        EXPECT_TRUE(
            std::all_of(chunks.begin(), chunks.end(), [](int times) { return times == 1; }));
    }
}

TEST(PackChunks, HoldEveryChunkOnce) {
    std::vector<std::uint64_t> mixed;
    for (std::uint64_t i = 0; i < 600; ++i) {
        mixed.push_back(i * i * 997 % 700001);
    }
    const std::vector<std::uint64_t> cut{400 * kChunk + 1, 3, 320 * kChunk, 0, 1};
    const std::vector<std::uint64_t> small(1000, 5);
    for (const auto& sizes : {mixed, cut, small}) {
        expect_every_chunk_once<SmallChunkedTable>(sizes, false);
        expect_every_chunk_once<LargeChunkedTable>(sizes, true);
    }
}

TEST(PackChunks, MakeAsManyLaunchesAsTorch) {
    const auto launches = [](std::size_t count, std::uint64_t elements, bool large) {
        const std::vector<AdamTensor> tensors(count, tensor(elements));
        return pack_chunks(tensors, std::vector<std::uint64_t>(count, 0x10), large).size();
    };
    EXPECT_EQ(launches(36, 1, false), 1U);
    EXPECT_EQ(launches(37, 1, false), 2U);
    EXPECT_EQ(launches(252, 1, true), 1U);
    EXPECT_EQ(launches(253, 1, true), 2U);
    // 1e9 elements in 100 tensors: 153 chunks each.
    EXPECT_EQ(launches(100, 10'000'000, false), 48U);
    EXPECT_EQ(launches(100, 10'000'000, true), 7U);
    EXPECT_EQ(launches(0, 1, true), 0U);
}

TEST(PackSteps, TakeABlockEach) {
    const std::vector<std::uint64_t> steps(771, 0x40);
    const auto small = pack_steps(steps, false);
    ASSERT_EQ(small.size(), 8U);
    EXPECT_EQ(small.front().blocks, 110U);
    EXPECT_EQ(small.back().blocks, 1U);
    const auto large = pack_steps(steps, true);
    ASSERT_EQ(large.size(), 2U);
    EXPECT_EQ(large.front().blocks, 770U);
    EXPECT_EQ(address_of(table_of<LargeStepTable>(large.back().table).steps[0]), 0x40U);
}

}  // namespace
}  // namespace cudiag
