// Core dumps of a GPU: real ones (tests/golden/core_dump, an H200 with driver 580), and made ones.
#include "diagnose/cuda/core_dump.h"

#include <gtest/gtest.h>
#include <zlib.h>

#include "tests/unit/diagnose/cuda/core_file.h"
#include "tests/unit/diagnose/loader/elf_world.h"

namespace cudiag {
namespace {

using testing::CoreFile;
using testing::kCalleeAt;
using testing::kKernelAt;
using testing::kOtherAt;
using testing::row;
using testing::thread_at;
using testing::warp_at;

using Three = std::array<std::uint64_t, 3>;

GpuCore read_made(const testing::SectionsFile& file) {
    const ElfWorld world;
    return read_gpu_core(world.text("made.core", file.bytes()));
}

GpuCore read_golden(const std::string& name) {
    const std::string path = std::string{CUDIAG_TEST_DATA "/golden/core_dump/"} + name + ".core.gz";
    std::string core;
    gzFile file = gzopen(path.c_str(), "rb");
    EXPECT_NE(file, nullptr) << path;
    char buffer[1 << 14];
    for (int got = 0; file != nullptr && (got = gzread(file, buffer, sizeof buffer)) > 0;) {
        core.append(buffer, static_cast<std::size_t>(got));
    }
    gzclose(file);
    const ElfWorld world;
    return read_gpu_core(world.text(name + ".core", core));
}

}  // namespace

TEST(GpuCoreGolden, OutOfBoundsIsKeptByTheMultiprocessorWhereTheThreadsAreGone) {
    const GpuCore core = read_golden("out_of_bounds");
    EXPECT_EQ(core.problem, "");
    EXPECT_EQ(core.device, "NVIDIA H200");
    EXPECT_EQ(core.generator, "UD");
    EXPECT_EQ(core.driver, "580.159");
    EXPECT_EQ(core.cuda, "13.0");
    EXPECT_GT(core.timestamp_s, 1'700'000'000U);
    EXPECT_EQ(core.threads, 0U);
    ASSERT_EQ(core.exceptions.size(), 2U) << "two multiprocessors";
    const GpuException& first = core.exceptions[0];
    EXPECT_EQ(first.code, 14U);
    EXPECT_EQ(first.sm, 124U);
    EXPECT_FALSE(first.thread_known);
    EXPECT_EQ(first.kernel, "_Z20writes_out_of_boundsPfm");
    EXPECT_EQ(first.function, first.kernel);
    EXPECT_EQ(first.offset, 0xa0U);
    EXPECT_EQ(first.source, "/usr/src/cudiag/test/faults.cu:26");
    EXPECT_EQ(first.grid, Three{}) << "its grid is gone as well";
}

TEST(GpuCoreGolden, AssertionIsOfEveryThreadOfThreeBlocks) {
    const GpuCore core = read_golden("assertion");
    EXPECT_EQ(core.problem, "");
    EXPECT_EQ(core.threads, 96U);
    ASSERT_EQ(core.exceptions.size(), 96U);
    const GpuException& last = core.exceptions.back();
    EXPECT_EQ(last.code, 12U);
    EXPECT_TRUE(last.thread_known);
    EXPECT_EQ(last.kernel, "_Z7assertsPKi");
    EXPECT_EQ(last.offset, 0x180U);
    EXPECT_EQ(last.source, "/usr/src/cudiag/test/faults.cu:30");
    EXPECT_EQ(last.block_index, (Three{2, 0, 0}));
    EXPECT_EQ(last.thread_index, (Three{31, 0, 0}));
    EXPECT_EQ(last.grid, (Three{3, 1, 1}));
    EXPECT_EQ(last.block, (Three{32, 1, 1}));
}

TEST(GpuCoreGolden, MisalignedIsWhereItAroseAndNotWhereTheWarpStopped) {
    const GpuCore core = read_golden("misaligned");
    ASSERT_EQ(core.exceptions.size(), 1U);
    EXPECT_EQ(core.exceptions[0].code, 6U);
    EXPECT_EQ(core.exceptions[0].kernel, "_Z16reads_misalignedPKcPi");
    EXPECT_EQ(core.exceptions[0].offset, 0x30U);
    EXPECT_EQ(core.exceptions[0].source, "/usr/src/cudiag/test/faults.cu:34");
    EXPECT_EQ(core.threads, 1U);
}

TEST(GpuCoreGolden, TrapIsNoExceptionAndToldByTheWarpThatStopped) {
    const GpuCore core = read_golden("trap");
    ASSERT_EQ(core.exceptions.size(), 1U);
    EXPECT_EQ(core.exceptions[0].code, 0U);
    EXPECT_EQ(core.exceptions[0].kernel, "_Z5trapsv");
    EXPECT_EQ(core.exceptions[0].offset, 0x20U);
    EXPECT_EQ(core.exceptions[0].source, "/usr/src/cudiag/test/faults.cu:38");
    EXPECT_EQ(core.threads, 1U);
    EXPECT_EQ(core.device, "NVIDIA H200");
}

TEST(GpuCore, OfADriverBeforeMostFieldsReadsWhatIsThere) {
    CoreFile file;
    file.multiprocessors(row({}, {0, 0}) + row({}, {1, 0}), 8);
    file.block(1, 5, warp_at(0),
               thread_at(kKernelAt + 0x40, 0, 0) + thread_at(kKernelAt + 0x50, 1, 1));
    const GpuCore core = read_made(file);
    EXPECT_EQ(core.problem, "");
    EXPECT_EQ(core.device, "Made GPU");
    EXPECT_EQ(core.driver, "");
    EXPECT_EQ(core.timestamp_s, 0U);
    ASSERT_EQ(core.exceptions.size(), 1U) << "the other thread had none";
    const GpuException& thread = core.exceptions[0];
    EXPECT_EQ(thread.code, 1U);
    EXPECT_EQ(thread.sm, 1U);
    EXPECT_EQ(thread.block_index, (Three{5, 0, 0}));
    EXPECT_EQ(thread.thread_index, (Three{1, 0, 0}));
    EXPECT_EQ(thread.grid, (Three{8, 1, 1}));
    EXPECT_EQ(thread.block, (Three{64, 2, 1}));
    EXPECT_EQ(thread.kernel, "_Z4axpyPfi");
    EXPECT_EQ(thread.offset, 0x50U);
    EXPECT_EQ(thread.source, "");
}

TEST(GpuCore, TellsTheFunctionThatAKernelCalls) {
    CoreFile file;
    file.multiprocessors(row({}, {0, 0}), 8);
    file.block(0, 0, warp_at(kCalleeAt + 0x20), thread_at(kCalleeAt + 0x60, 0, 14));
    const GpuCore core = read_made(file);
    ASSERT_EQ(core.exceptions.size(), 1U);
    EXPECT_EQ(core.exceptions[0].kernel, "_Z4axpyPfi");
    EXPECT_EQ(core.exceptions[0].function, "_Z4helpi");
    EXPECT_EQ(core.exceptions[0].offset, 0x20U);
}

TEST(GpuCore, DoesNotBlameThreadsOfOtherKernelsForWhatAMultiprocessorKept) {
    CoreFile file;
    file.multiprocessors(row({}, {3, 0, 10, 1}) + testing::bytes_of(kOtherAt + 8, 8), 24);
    file.block(0, 0, warp_at(0), thread_at(kKernelAt, 0, 0));
    const GpuCore core = read_made(file);
    ASSERT_EQ(core.exceptions.size(), 1U);
    EXPECT_EQ(core.exceptions[0].code, 10U);
    EXPECT_FALSE(core.exceptions[0].thread_known);
    EXPECT_EQ(core.exceptions[0].kernel, "_Z5otherv");
    EXPECT_EQ(core.exceptions[0].offset, 8U);
    EXPECT_EQ(core.exceptions[0].grid, Three{});
}

TEST(GpuCore, TellsAnExceptionOnceWhereItsThreadIsStillThere) {
    CoreFile file;
    file.multiprocessors(row({}, {0, 0, 14, 1}) + testing::bytes_of(kKernelAt, 8), 24);
    file.block(0, 0, warp_at(kKernelAt), thread_at(kKernelAt, 0, 14));
    EXPECT_EQ(read_made(file).exceptions.size(), 1U);
}

TEST(GpuCore, TakesWarpsThatStoppedOnlyWhereThereIsNoException) {
    CoreFile file;
    file.multiprocessors(row({}, {0, 0}) + row({}, {1, 0}), 8);
    file.block(0, 0, warp_at(0, true), thread_at(kKernelAt, 0, 0));
    file.block(1, 1, warp_at(0), thread_at(kKernelAt + 16, 0, 12));
    const GpuCore core = read_made(file);
    ASSERT_EQ(core.exceptions.size(), 1U);
    EXPECT_EQ(core.exceptions[0].code, 12U);
}

TEST(GpuCore, OfAnAddressInNoModuleTellsTheKernelByItsGrid) {
    CoreFile file;
    file.multiprocessors(row({}, {0, 0}), 8);
    file.block(0, 0, warp_at(0), thread_at(0x1234, 0, 14));
    const GpuCore core = read_made(file);
    ASSERT_EQ(core.exceptions.size(), 1U);
    EXPECT_EQ(core.exceptions[0].kernel, "_Z4axpyPfi");
    EXPECT_EQ(core.exceptions[0].function, "");
    EXPECT_EQ(core.exceptions[0].pc, 0x1234U);
}

TEST(GpuCore, CountsAllThreadsAndKeepsSome) {
    CoreFile file;
    file.multiprocessors(row({}, {0, 0}), 8);
    std::string threads;
    for (std::uint64_t lane = 0; lane < 1000; ++lane) {
        threads += thread_at(kKernelAt, lane, 14);
    }
    file.block(0, 0, warp_at(0), threads);
    const GpuCore core = read_made(file);
    EXPECT_EQ(core.threads, 1000U);
    EXPECT_EQ(core.exceptions.size(), 256U);
}

TEST(GpuCore, WithoutAnyExceptionHasNone) {
    CoreFile file;
    file.multiprocessors(row({}, {0, 0, 0, 0}) + testing::bytes_of(0, 8), 24);
    file.block(0, 0, warp_at(0), thread_at(kKernelAt, 0, 0));
    const GpuCore core = read_made(file);
    EXPECT_EQ(core.problem, "");
    EXPECT_TRUE(core.exceptions.empty());
}

TEST(GpuCore, SaysWhatIsWrongWithOtherFiles) {
    const ElfWorld world;
    EXPECT_EQ(read_gpu_core(world.path("absent")).problem, "No such file or directory");
    EXPECT_NE(read_gpu_core(world.text("text", "no core")).problem, "");
    EXPECT_NE(read_gpu_core(world.text("empty", "")).problem, "");
    EXPECT_EQ(read_made(testing::SectionsFile{ET_CORE, EM_X86_64}).problem,
              "it is no core dump of a GPU");
    EXPECT_EQ(read_made(testing::SectionsFile{ET_EXEC}).problem, "it is no core dump of a GPU");
    EXPECT_NE(read_made(testing::SectionsFile{}).problem.find("cut short"), std::string::npos);
    const CoreFile whole;
    const std::string bytes = whole.bytes();
    const GpuCore cut = read_gpu_core(world.text("cut", bytes.substr(0, bytes.size() / 2)));
    EXPECT_NE(cut.problem, "");
    EXPECT_TRUE(cut.exceptions.empty());
}

TEST(GpuCore, FollowsNoTableThatCannotBe) {
    for (const std::uint64_t size : {std::uint64_t{7}, std::uint64_t{1} << 60}) {
        CoreFile file;
        file.multiprocessors(row({}, {0, 0}), 8);
        file.block(0, 0, warp_at(0), thread_at(kKernelAt, 0, 14));
        file.section(file.sms).sh_entsize = size;
        EXPECT_TRUE(read_made(file).exceptions.empty()) << size;
    }
    CoreFile file;
    file.multiprocessors(row({}, {0, 0}), 8);
    file.section(file.sms).sh_size = std::uint64_t{1} << 60;
    EXPECT_TRUE(read_made(file).exceptions.empty()) << "more bytes than the file has";
    file.section(file.devices).sh_offset = std::uint64_t{1} << 62;
    EXPECT_NE(read_made(file).problem, "");
}

TEST(GpuCore, OfAModuleThatIsNoElfFileKnowsNoNames) {
    CoreFile file;
    file.multiprocessors(row({}, {0, 0}), 8);
    file.block(0, 0, warp_at(0), thread_at(kKernelAt, 0, 14));
    file.section(file.module).sh_size = 16;
    const GpuCore core = read_made(file);
    ASSERT_EQ(core.exceptions.size(), 1U);
    EXPECT_EQ(core.exceptions[0].kernel, "");
    EXPECT_EQ(core.exceptions[0].pc, kKernelAt);
}

}  // namespace cudiag
