#include "present/libraries.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <sstream>

namespace cudiag {
namespace {

// Columns, not bytes: a continuation byte of UTF-8 takes none.
std::size_t columns(const std::string& line) {
    return static_cast<std::size_t>(std::count_if(line.begin(), line.end(), [](char byte) {
        return (static_cast<unsigned char>(byte) & 0xc0U) != 0x80U;
    }));
}

TEST(Shortened, KeepsBothEndsWithinTheRoom) {
    EXPECT_EQ(shortened("/opt/lib/libcudart.so.12", 40), "/opt/lib/libcudart.so.12");
    const std::string path =
        "/home/somebody/projects/training/.venv/lib/python3.11/site-packages/nvidia/nccl/lib/"
        "libnccl.so.2";
    const std::string text = shortened(path, 60);
    EXPECT_EQ(columns(text), 60U);
    EXPECT_EQ(text.rfind("/home/", 0), 0U);
    EXPECT_NE(text.find("…"), std::string::npos);
    EXPECT_TRUE(text.ends_with("/nccl/lib/libnccl.so.2")) << text;
}

ProcessLibraries two_runtimes() {
    const std::string site =
        "/home/somebody/projects/a-long-name/.venv/lib/python3.11/site-packages";
    ProcessLibraries process;
    process.pid = 77;
    process.driver = {.path = "/usr/lib/x86_64-linux-gnu/libcuda.so.550.54.14",
                      .release = "550.54.14",
                      .cuda = "12.4"};
    MappedLibrary older;
    older.path = site + "/nvidia/cuda_runtime/lib/libcudart.so.12";
    older.family = "cudart";
    older.version = "12.4.127";
    older.twice = true;
    MappedLibrary newer = older;
    newer.path = site + "/nvidia/cu13/lib/libcudart.so.13";
    newer.version = "13.0.96";
    newer.needed_by = {"/a/one.so", "/b/two.so", "/c/three.so", "/d/four.so", "/e/five.so"};
    MappedLibrary gone;
    gone.path = "/tmp/libnccl.so.2";
    gone.since = "gone";
    process.libraries = {older, newer, gone};
    return process;
}

TEST(RenderLibraries, ShowsVersionsAndUsersWithinTheWidth) {
    const std::string text = render_libraries({two_runtimes()}, {.colour = false, .width = 80});
    std::istringstream lines{text};
    for (std::string line; std::getline(lines, line);) {
        EXPECT_LE(columns(line), 80U) << line;
    }
    EXPECT_NE(text.find("libraries 77\n"), std::string::npos) << text;
    EXPECT_NE(text.find("driver           550.54.14, CUDA 12.4\n"), std::string::npos) << text;
    EXPECT_NE(text.find("libcudart.so.12  12.4.127   twice  by dlopen\n"), std::string::npos)
        << text;
    EXPECT_NE(text.find("needed by one.so, two.so, three.so"), std::string::npos) << text;
    EXPECT_NE(text.find("and 2"), std::string::npos) << text;
    EXPECT_EQ(text.find("four.so"), std::string::npos) << text;
    EXPECT_NE(text.find("file gone"), std::string::npos) << text;
    EXPECT_EQ(render_libraries({}, {}), "");
}

TEST(RenderLibraries, ShowsWhatTheRanksOfAJobShareOnce) {
    ProcessLibraries one = two_runtimes();
    ProcessLibraries other = two_runtimes();
    other.pid = 78;
    ProcessLibraries different = two_runtimes();
    different.pid = 79;
    different.libraries.pop_back();
    const std::string text = render_libraries({one, different, other}, {});
    EXPECT_NE(text.find("libraries 77, 78\n"), std::string::npos) << text;
    EXPECT_NE(text.find("libraries 79\n"), std::string::npos) << text;
    EXPECT_EQ(text.find("libraries 78"), std::string::npos) << text;
}

TEST(LibrariesJson, HasWhatTheCatalogueTells) {
    const auto json = libraries_json({two_runtimes()});
    ASSERT_EQ(json.size(), 1U);
    EXPECT_EQ(json[0]["driver"]["cuda"], "12.4");
    EXPECT_EQ(json[0]["libraries"][1]["needed_by"].size(), 5U);
    EXPECT_EQ(json[0]["libraries"][0]["library"], "cudart");
    EXPECT_EQ(json[0]["libraries"][2]["since"], "gone");
}

TEST(RenderDeviceCode, IsOneLineForAFileThatHasSome) {
    const std::vector<DeviceCode> code = {{false, 80, "", false, "", false},
                                          {false, 90, "a", false, "", false},
                                          {true, 90, "", false, "8.3", true},
                                          {true, 90, "", false, "8.4", false}};
    EXPECT_EQ(render_device_code(code), "device code: sm_80 sm_90a (SASS), compute_90 (PTX)\n");
    EXPECT_EQ(render_device_code({}), "");
}

TEST(DeviceCodeJson, HasOneObjectAnArchitecture) {
    const std::vector<DeviceCode> code = {{false, 90, "a", false, "", false},
                                          {true, 90, "", false, "8.4", true},
                                          {false, 80, "", true, "", false}};
    const auto json = device_code_json(code);
    ASSERT_EQ(json.size(), 3U);
    EXPECT_EQ(
        json[0].dump(),
        R"({"name":"sm_90a","kind":"sass","sm":90,"variant":"a","ptx_version":"","relocatable":false})");
    EXPECT_EQ(json[1]["kind"], "ptx");
    EXPECT_EQ(json[1]["ptx_version"], "8.4");
    EXPECT_EQ(json[1]["relocatable"], true);
    EXPECT_EQ(json[2]["name"], "lto_80");
    EXPECT_EQ(device_code_json({}).dump(), "[]");
}

}  // namespace
}  // namespace cudiag
