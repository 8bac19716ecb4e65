#include "shim/python_memory.h"

#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <vector>

namespace cudiag {
namespace {

long line_at(PythonLines form, const std::vector<uint8_t>& table, int64_t offset) {
    return python_line_in(form, table.data(), table.size(), 10, offset);
}

TEST(PythonMemory, KnowsReleasesOnly) {
    PythonLayout layout{};
    for (const char* version : {"3.8.0 (default", "3.9.18 (main", "3.10.13 (main", "3.11.2 (main",
                                "3.12.1+ (heads/3.12"}) {
        EXPECT_TRUE(python_layout_of(version, &layout)) << version;
    }
    for (const char* version :
         {"3.7.9 (", "3.12.0rc1 (", "3.12.0a4 (", "3.13.0 (", "3.1.2 (", "2.7.18 (", "3.12.", ""}) {
        EXPECT_FALSE(python_layout_of(version, &layout)) << version;
    }
}

TEST(PythonMemory, LinesByIncrements) {
    const std::vector<uint8_t> table = {0, 1, 6, 2, 4, 0xfe};
    EXPECT_EQ(line_at(PythonLines::increments, table, -1), 10);
    EXPECT_EQ(line_at(PythonLines::increments, table, 0), 11);
    EXPECT_EQ(line_at(PythonLines::increments, table, 6), 13);
    EXPECT_EQ(line_at(PythonLines::increments, table, 100), 11);
}

TEST(PythonMemory, LinesByRanges) {
    const std::vector<uint8_t> table = {4, 1, 2, 0x80, 6, 0xff};
    EXPECT_EQ(line_at(PythonLines::ranges, table, 2), 11);
    EXPECT_EQ(line_at(PythonLines::ranges, table, 4), 0) << "no line";
    EXPECT_EQ(line_at(PythonLines::ranges, table, 10), 10);
    EXPECT_EQ(line_at(PythonLines::ranges, table, 12), 0) << "beyond the table";
}

TEST(PythonMemory, LinesByLocations) {
    // one unit each: short form, one line further, no columns at -3, all of it at +70, none
    const std::vector<uint8_t> table = {0x80, 0x00, 0xd8, 0, 0, 0xe8, 0x07,
                                        0xf0, 0x4c, 0x02, 0, 1, 2,    0xf9};
    EXPECT_EQ(line_at(PythonLines::locations, table, 0), 10);
    EXPECT_EQ(line_at(PythonLines::locations, table, 2), 11);
    EXPECT_EQ(line_at(PythonLines::locations, table, 4), 8);
    EXPECT_EQ(line_at(PythonLines::locations, table, 6), 78);
    EXPECT_EQ(line_at(PythonLines::locations, table, 8), 0);
    EXPECT_EQ(line_at(PythonLines::locations, table, 10), 0) << "the last entry has two units";
    EXPECT_EQ(line_at(PythonLines::locations, table, 12), 0);
}

TEST(PythonMemory, BrokenTablesEnd) {
    for (const PythonLines form :
         {PythonLines::increments, PythonLines::ranges, PythonLines::locations}) {
        for (unsigned first = 0; first < 256; ++first) {
            for (size_t size = 0; size < 40; ++size) {
                const std::vector<uint8_t> table(size, static_cast<uint8_t>(first));
                (void)line_at(form, table, 1 << 20);
                (void)line_at(form, table, 1);
            }
        }
    }
}

// A process's memory in small: _PyRuntime, a thread, its frames, code and a name.
struct Process {
    uint64_t runtime[128] = {};
    alignas(16) uint64_t type_of_code[2] = {};
    alignas(16) uint64_t type_of_text[2] = {};
    alignas(16) uint64_t type_of_bytes[2] = {};
    alignas(16) char thread[256] = {};
    alignas(16) char frames[4][128] = {};
    alignas(16) char code[512] = {};
    alignas(16) char name[64] = {};
    PythonTypes types{type_of_code, type_of_text, type_of_bytes, nullptr};
    PythonLayout layout{};

    template <class T>
    static void put(char* object, size_t offset, T value) {
        std::memcpy(object + offset, &value, sizeof value);
    }

    void set(std::initializer_list<std::pair<int, uint64_t>> words) {
        std::memcpy(runtime, "xdebugpy", 8);
        for (const auto& [word, value] : words) {
            runtime[word] = value;
        }
    }
};

// Offsets that a 3.14 may have: where they stand is what matters here.
void make_3_14(Process& process) {
    process.set({{1, 0x030e00f0},
                 {26, 72},
                 {32, 8},
                 {33, 0},
                 {34, 56},
                 {36, 74},
                 {40, 112},
                 {42, 128},
                 {43, 136},
                 {44, 68},
                 {48, 208},
                 {51, 8},
                 {75, 16},
                 {76, 32},
                 {78, 32},
                 {79, 16},
                 {80, 40}});
}

TEST(PythonMemory, LayoutOfTheProcessItself) {
    Process process;
    EXPECT_FALSE(python_layout_at(nullptr, &process.layout));
    EXPECT_FALSE(python_layout_at(process.runtime, &process.layout)) << "no cookie";
    make_3_14(process);
    ASSERT_TRUE(python_layout_at(process.runtime, &process.layout));
    EXPECT_EQ(process.layout.thread_frame, 72);
    EXPECT_EQ(process.layout.code_begin, 208);
    EXPECT_EQ(process.layout.other_text, 56);
    process.runtime[2] = 1;
    EXPECT_FALSE(python_layout_at(process.runtime, &process.layout)) << "without a GIL";
    process.runtime[2] = 0;
    process.runtime[51] = 24;
    EXPECT_FALSE(python_layout_at(process.runtime, &process.layout)) << "another object";
    make_3_14(process);
    process.runtime[40] = 1 << 20;
    EXPECT_FALSE(python_layout_at(process.runtime, &process.layout)) << "no offset";
    make_3_14(process);
    for (const uint64_t version : {0x030e00c1U, 0x030f00f0U, 0x030c01f0U}) {
        process.runtime[1] = version;
        EXPECT_FALSE(python_layout_at(process.runtime, &process.layout)) << version;
    }
    process.set({{1, 0x030d00f0},
                 {23, 72},
                 {29, 8},
                 {30, 0},
                 {31, 56},
                 {33, 70},
                 {35, 112},
                 {37, 128},
                 {38, 136},
                 {39, 68},
                 {43, 200},
                 {45, 8},
                 {65, 16},
                 {66, 32},
                 {68, 32},
                 {69, 16},
                 {70, 40}});
    ASSERT_TRUE(python_layout_at(process.runtime, &process.layout));
    EXPECT_EQ(process.layout.code_begin, 200);
    EXPECT_EQ(process.layout.frame_owner, 70);
}

TEST(PythonMemory, PassesOverWhatIsNoFrameOfTheProgram) {
    Process process;
    make_3_14(process);
    ASSERT_TRUE(python_layout_at(process.runtime, &process.layout));
    Process::put(process.code, 8, process.types.code);
    Process::put(process.code, 16, int64_t{20});       // units
    Process::put(process.code, 208 - 16, int32_t{2});  // _co_firsttraceable
    Process::put(process.code, 128, static_cast<void*>(process.name));
    Process::put(process.name, 8, process.types.text);
    Process::put(process.name, 16, int64_t{3});
    Process::put(process.name, 32, uint32_t{(1U << 2) | (1U << 5) | (1U << 6)});
    std::memcpy(process.name + 40, "abc", 3);
    // A frame of the program, one of the interpreter's, one that has not begun, another; tagged.
    const uint8_t owners[] = {0, 4, 0, 1};
    const int64_t offsets[] = {8, 0, 0, 0};
    for (size_t i = 0; i < 4; ++i) {
        Process::put(process.frames[i], 0, process.code + (i == 0 ? 1 : 0));
        Process::put(process.frames[i], 8, i == 3 ? nullptr : process.frames[i + 1]);
        Process::put(process.frames[i], 56, process.code + 208 + offsets[i]);
        Process::put(process.frames[i], 74, owners[i]);
    }
    Process::put(process.thread, 72, static_cast<void*>(process.frames[0]));
    PythonStack stack(process.layout, process.types, process.thread);
    PythonFrame frame{};
    ASSERT_TRUE(stack.next(&frame));
    EXPECT_EQ(frame.code, process.code);
    EXPECT_EQ(frame.offset, 8);
    const PythonText name = python_function_of(process.layout, process.types, frame.code);
    EXPECT_TRUE(same_python_text(name, "abc", 3));
    EXPECT_FALSE(same_python_text(name, "ab", 2));
    EXPECT_EQ(python_file_of(process.layout, process.types, frame.code).characters, nullptr);
    EXPECT_EQ(python_line_of(process.layout, process.types, frame), 0) << "no table";
    ASSERT_TRUE(stack.next(&frame));
    EXPECT_EQ(frame.frame, process.frames[3]);
    EXPECT_FALSE(stack.next(&frame));

    const uint64_t site = python_site_of(process.layout, process.thread, 8);
    EXPECT_NE(site, 0U);
    EXPECT_EQ(site, python_site_of(process.layout, process.thread, 8));
    Process::put(process.frames[3], 56, process.code + 208 + 2);
    EXPECT_NE(site, python_site_of(process.layout, process.thread, 8));

    // A circle ends, and so does a frame that is none.
    Process::put(process.frames[3], 8, process.frames[0]);
    PythonStack circle(process.layout, process.types, process.thread);
    int steps = 0;
    while (circle.next(&frame)) {
        ++steps;
    }
    EXPECT_LT(steps, 5000);
    EXPECT_NE(python_site_of(process.layout, process.thread, 8), 0U);
    Process::put(process.code, 8, process.types.text);
    PythonStack no_code(process.layout, process.types, process.thread);
    EXPECT_FALSE(no_code.next(&frame));
    Process::put(process.thread, 72, uint64_t{0});
    EXPECT_EQ(python_site_of(process.layout, process.thread, 8), 0U);
}

TEST(PythonMemory, WritesUtf8) {
    const uint32_t characters[] = {'a', 0xe9, 0x4e16, 0x1f600, 0xd800};
    const std::string expected = "a\u00e9\u4e16\U0001f600?";
    const PythonText text{characters, 5, 4};
    char bytes[16];
    ASSERT_EQ(python_utf8(text, bytes, sizeof bytes), expected.size());
    EXPECT_EQ(std::string(bytes, expected.size()), expected);
    EXPECT_TRUE(same_python_text(text, expected.data(), expected.size()));
    EXPECT_EQ(python_utf8(text, bytes, expected.size() - 1), 0U);
    const uint8_t latin[] = {0xe9, 'b'};
    EXPECT_EQ(python_utf8({latin, 2, 1}, bytes, sizeof bytes), 3U);
    EXPECT_TRUE(same_python_text({latin, 2, 1}, "\u00e9b", 3));
}

}  // namespace
}  // namespace cudiag
