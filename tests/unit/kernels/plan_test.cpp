#include "kernels/plan.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace cudiag {
namespace {

constexpr std::uint64_t kGiga = std::uint64_t{1} << 30;

TEST(StandardPlan, HasTheSizeOfTheBudgetOnALargeCard) {
    const MeasurePlan plan = standard_plan(130 * kGiga);
    EXPECT_TRUE(std::any_of(plan.sizes.begin(), plan.sizes.end(), [](const AdamSize& size) {
        return size.elements == 1'000'000'000 && size.tensors == 100 && !size.checks;
    }));
    EXPECT_TRUE(std::any_of(plan.sizes.begin(), plan.sizes.end(),
                            [](const AdamSize& size) { return size.checks; }));
    EXPECT_EQ(plan.kinds.size(), 3U);
}

TEST(StandardPlan, LeavesOutWhatDoesNotFit) {
    for (const std::uint64_t gigabytes : {0, 4, 6, 8, 24}) {
        const MeasurePlan plan = standard_plan(gigabytes * kGiga);
        for (const AdamSize& size : plan.sizes) {
            for (const AdamKind& kind : plan.kinds) {
                EXPECT_LT(bytes_of(size, kind), gigabytes * kGiga);
            }
        }
    }
    EXPECT_TRUE(standard_plan(4 * kGiga).sizes.empty());  // the copy alone takes that
    EXPECT_FALSE(standard_plan(8 * kGiga).sizes.empty());
}

TEST(AdamSizes, ShareTheElementsOut) {
    const AdamSize size{.elements = 10, .tensors = 4};
    EXPECT_EQ(elements_of(size, 0), 3U);
    EXPECT_EQ(elements_of(size, 1), 3U);
    EXPECT_EQ(elements_of(size, 2), 2U);
    EXPECT_EQ(elements_of(size, 3), 2U);
    EXPECT_EQ(stride_of(size, 4), 512U);
    EXPECT_EQ(stride_of({.elements = 129, .tensors = 1}, 4), 1024U);
}

TEST(QuartilesOf, AreThoseOfTheValues) {
    const Quartiles five = quartiles({5, 1, 4, 2, 3});
    EXPECT_DOUBLE_EQ(five.low, 2);
    EXPECT_DOUBLE_EQ(five.median, 3);
    EXPECT_DOUBLE_EQ(five.high, 4);
    const Quartiles two = quartiles({1, 2});
    EXPECT_DOUBLE_EQ(two.low, 1.25);
    EXPECT_DOUBLE_EQ(two.median, 1.5);
    EXPECT_DOUBLE_EQ(quartiles({7}).high, 7);
}

}  // namespace
}  // namespace cudiag
