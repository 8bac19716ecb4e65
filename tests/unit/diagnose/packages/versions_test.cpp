#include <gtest/gtest.h>

#include <algorithm>

#include "diagnose/packages/owner.h"

namespace cudiag {
namespace {

TEST(CompareVersions, OrdersAsPep440Does) {
    const std::vector<std::string> ordered{
        "0.9",       "1.0.dev1", "1.0a1.dev2", "1.0a1", "1.0b2",  "1.0rc1.dev1", "1.0rc1", "1.0",
        "1.0.post1", "1.0.1",    "1.2.3.4",    "1.10",  "2.0rc1", "2.0",         "1!0.1"};
    for (std::size_t i = 0; i < ordered.size(); ++i) {
        for (std::size_t j = 0; j < ordered.size(); ++j) {
            const int result = compare_versions(ordered[i], ordered[j]);
            EXPECT_EQ(result < 0, i < j) << ordered[i] << " and " << ordered[j];
            EXPECT_EQ(result == 0, i == j) << ordered[i] << " and " << ordered[j];
        }
    }
}

TEST(CompareVersions, CountsMissingNumbersAsZero) {
    EXPECT_EQ(compare_versions("1.0", "1"), 0);
    EXPECT_EQ(compare_versions("12.4.0.0", "12.4"), 0);
    EXPECT_GT(compare_versions("12.4.127", "12.4"), 0);
    EXPECT_GT(compare_versions("12.10", "12.9"), 0);
}

TEST(CompareVersions, IgnoresTheLocalPart) {
    EXPECT_EQ(compare_versions("2.11.0+cu126", "2.11.0"), 0);
    EXPECT_EQ(compare_versions("2.11.0+cu126", "2.11.0+cu130"), 0);
    EXPECT_LT(compare_versions("2.9.1+cu128", "2.11.0"), 0);
}

TEST(CompareVersions, ReadsOtherSpellings) {
    EXPECT_EQ(compare_versions("v1.0", "1.0"), 0);
    EXPECT_EQ(compare_versions("1.0RC1", "1.0-rc.1"), 0);
    EXPECT_EQ(compare_versions("1.0alpha2", "1.0a2"), 0);
    EXPECT_LT(compare_versions("2.18.1-1", "2.19.3-1"), 0);  // Debian
    EXPECT_GT(compare_versions("1:1.0", "2.0"), 0);
    EXPECT_GT(compare_versions("2.26.2.post1", "2.26.2"), 0);
}

TEST(CompareVersions, SurvivesWhatIsNoVersion) {
    EXPECT_EQ(compare_versions("", ""), 0);
    EXPECT_LT(compare_versions("", "0.1"), 0);
    EXPECT_EQ(compare_versions("unknown", ""), 0);
    EXPECT_GT(compare_versions("99999999999999999999999", "1"), 0);
    EXPECT_EQ(compare_versions("1.0~git", "1.0"), 0);
}

}  // namespace
}  // namespace cudiag
