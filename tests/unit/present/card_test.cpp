#include "present/card.h"

#include <gtest/gtest.h>

namespace cudiag {
namespace {

AdamWTime row(const std::string& implementation, const std::string& dtype, std::uint64_t elements,
              double ms, bool large_tables = false) {
    return {.implementation = implementation,
            .dtype = dtype,
            .large_tables = large_tables,
            .elements = elements,
            .tensors = 100,
            .launches = 2,
            .bytes = elements * 28,
            .milliseconds = {.low = ms, .median = ms, .high = ms}};
}

Card card() {
    return {.uuid = "GPU-1",
            .name = "NVIDIA H200",
            .driver = "580.159.04",
            .made = "2026-12-02T19:20:00Z",
            .copy_gb_per_s = {.low = 4210, .median = 4230, .high = 4240},
            .adamw = {row("cudiag", "float32", 1'000'000, 0.02),
                      row("cudiag", "float32", 1'000'000'000, 6.66),
                      row("fused", "float32", 1'000'000'000, 8.10),
                      row("fused", "float32", 1'000'000'000, 8.06, true),
                      row("cudiag", "bfloat16", 1'000'000, 0.01),
                      row("cudiag", "bfloat16", 1'000'000'000, 3.4)},
            .checks = {},
            .fused_error = 0.05};
}

TEST(RenderCard, TellsTheCopyAndEachSizeBesideTorchs) {
    const std::string text = render_card(card(), {});
    EXPECT_NE(text.find("NVIDIA H200, driver 580.159.04, GPU-1\n"), std::string::npos) << text;
    EXPECT_NE(text.find("copy: 4230 GB/s read and written (quartiles 4210 and 4240)"),
              std::string::npos)
        << text;
    EXPECT_NE(text.find("float32          1,000,000,000     100      6.660   4204    99 %       "
                        "8.100     8.060\n"),
              std::string::npos)
        << text;
    EXPECT_NE(text.find("float32              1,000,000     100      0.020   1400    33 %          "
                        " -         -\n"),
              std::string::npos)
        << text;
}

TEST(RenderCard, ShowsOnlyTheLargestSizeOfOtherDtypes) {
    const std::string text = render_card(card(), {});
    EXPECT_NE(text.find("bfloat16         1,000,000,000"), std::string::npos) << text;
    EXPECT_EQ(text.find("bfloat16             1,000,000 "), std::string::npos) << text;
}

TEST(RenderCard, FitsAHundredColumnsAndColoursOnlyWhereAsked) {
    const std::string text = render_card(card(), {});
    EXPECT_EQ(text.find('\033'), std::string::npos);
    EXPECT_NE(render_card(card(), {.colour = true}).find("\033[1m"), std::string::npos);
    std::size_t begin = 0;
    for (std::size_t end = text.find('\n'); end != std::string::npos;
         end = text.find('\n', begin)) {
        EXPECT_LE(end - begin, 100U);
        begin = end + 1;
    }
}

TEST(RenderCard, LetsNoControlBytesThrough) {
    Card strange = card();
    strange.name = "\033[31mred";
    EXPECT_EQ(render_card(strange, {}).find('\033'), std::string::npos);
}

}  // namespace
}  // namespace cudiag
