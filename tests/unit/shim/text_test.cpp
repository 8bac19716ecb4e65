#include "shim/text.h"

#include <gtest/gtest.h>

namespace cudiag {
namespace {

TEST(TextTest, PutsTextsAndNumbersTogether) {
    char buffer[64];
    Text text{buffer, sizeof buffer};
    text.add("run ").add(uint64_t{0}).add("-").add(UINT64_MAX);
    EXPECT_STREQ(buffer, "run 0-18446744073709551615");
    EXPECT_EQ(text.length(), 26U);
    EXPECT_FALSE(text.cut());
}

TEST(TextTest, CutsWhatDoesNotFitAndKnowsIt) {
    char buffer[8] = "zzzzzzz";
    Text text{buffer, 7};
    text.add("0123").add("45678").add("9");
    EXPECT_STREQ(buffer, "012345");
    EXPECT_TRUE(text.cut());
    EXPECT_EQ(buffer[7], '\0');
}

TEST(TextTest, HoldsExactlyWhatFits) {
    char buffer[5];
    Text text{buffer, sizeof buffer};
    text.add("1234");
    EXPECT_FALSE(text.cut());
    EXPECT_STREQ(buffer, "1234");
}

}  // namespace
}  // namespace cudiag
