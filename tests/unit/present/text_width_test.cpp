#include "present/text_width.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <sstream>
#include <string>

namespace cudiag {
namespace {

TEST(TextWidth, CountsColumnsAndNotBytes) {
    EXPECT_EQ(text_width(""), 0U);
    EXPECT_EQ(text_width("libcuda.so.1"), 12U);
    EXPECT_EQ(text_width("驱动"), 4U);
    EXPECT_EQ(text_width("找到（1）。"), 11U);
    EXPECT_EQ(text_width("… → —"), 5U);
    EXPECT_EQ(text_width("é"), 1U);
    EXPECT_EQ(text_width("e\xcc\x81"), 1U);  // the accent as a character of its own
    EXPECT_EQ(text_width("𠀀"), 2U);
}

TEST(TextWidth, TakesBytesThatAreNoTextAsOneColumnEach) {
    EXPECT_EQ(text_width("\xff\xfe"), 2U);
    EXPECT_EQ(text_width("\xe9\xa9"), 2U);  // cut in the middle of a character
    EXPECT_EQ(text_width("\xe9\xa9"
                         "a"),
              3U);
}

TEST(Wrapped, KeepsEveryChineseLineWithinTheWidth) {
    const std::string text =
        "libcudart.so.12 在任何一个被搜索的目录里都找不到，它被 libtorch_cuda.so 需要（torch "
        "2.13.0）。"
        "安装提供它的包，然后再运行一次。";
    std::istringstream lines{wrapped(text, 40, 4)};
    std::string joined;
    int count = 0;
    for (std::string line; std::getline(lines, line); ++count) {
        EXPECT_LE(text_width(line), 40U) << line;
        EXPECT_NE(line.substr(count == 0 ? 0 : 4).rfind("，", 0), 0U) << line;
        EXPECT_NE(line.substr(count == 0 ? 0 : 4).rfind("）", 0), 0U) << line;
        EXPECT_NE(line.substr(count == 0 ? 0 : 4).rfind("。", 0), 0U) << line;
        joined += line.substr(count == 0 ? 0 : 4);
    }
    EXPECT_GT(count, 2);
    std::string without_spaces = text;
    for (std::string* each : {&joined, &without_spaces}) {
        each->erase(std::remove(each->begin(), each->end(), ' '), each->end());
    }
    EXPECT_EQ(joined, without_spaces);  // nothing is lost at a break
}

TEST(Wrapped, DoesNotTearAWordOfLatinLettersApart) {
    EXPECT_NE(wrapped("这里有一个很长的名字libnvrtc-builtins.so.13.0在中间", 24, 0)
                  .find("libnvrtc-builtins.so.13.0"),
              std::string::npos);
}

}  // namespace
}  // namespace cudiag
