#include "diagnose/optimizer/card.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

namespace cudiag {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

Json row(const char* implementation, std::uint64_t elements, std::uint64_t tensors, double ms) {
    return {{"implementation", implementation},
            {"dtype", "float32"},
            {"large_tables", false},
            {"double_math", false},
            {"elements", elements},
            {"tensors", tensors},
            {"launches", 1},
            {"bytes", elements * 28},
            {"ms", {{"low", ms}, {"median", ms}, {"high", ms}, {"runs", 20}}}};
}

Json card_json() {
    return {{"schema", 1},
            {"made", "2026-12-02T19:20:00Z"},
            {"by", "cudiag 0.1.0"},
            {"card",
             {{"uuid", "GPU-1"}, {"name", "NVIDIA H200"}, {"driver", "580.159.04"}, {"sm", "9.0"}}},
            {"copy",
             {{"bytes", 1 << 30},
              {"gb_per_s", {{"low", 4200.0}, {"median", 4230.0}, {"high", 4240.0}, {"runs", 9}}}}},
            {"adamw",
             {row("fused", 1000000, 1000, 0.28), row("fused", 10000000, 1000, 0.56),
              row("fused", 65536000, 1000, 2.8), row("fused", 1000000000, 1000, 8.0),
              row("fused", 100000000, 10, 0.8), row("cudiag", 10000000, 1000, 0.07),
              row("cudiag", 1000000000, 1000, 6.6)}},
            {"fused_error", 0.05}};
}

Card card() {
    return card_from_json(card_json().dump()).value();
}

TEST(CardFile, IsReadAsItIsWritten) {
    const Card read = card();
    EXPECT_EQ(read.uuid, "GPU-1");
    EXPECT_EQ(read.driver, "580.159.04");
    EXPECT_DOUBLE_EQ(read.copy_gb_per_s.median, 4230);
    ASSERT_EQ(read.adamw.size(), 7U);
    EXPECT_EQ(read.adamw[0].implementation, "fused");
    EXPECT_EQ(read.adamw[1].bytes, 280000000U);
}

TEST(CardFile, IsRefusedIfItIsNotOurs) {
    EXPECT_FALSE(card_from_json(""));
    EXPECT_FALSE(card_from_json("[]"));
    EXPECT_FALSE(card_from_json("{\"schema\": 1}"));
    Json other = card_json();
    other["schema"] = 2;
    EXPECT_FALSE(card_from_json(other.dump()));
    Json text = card_json();
    text["adamw"][0]["elements"] = "many";
    EXPECT_FALSE(card_from_json(text.dump()));
    const std::string whole = card_json().dump();
    EXPECT_FALSE(card_from_json(whole.substr(0, whole.size() / 2)));
}

TEST(CardFile, IsRefusedWithTimesThatCannotBe) {
    for (const double wrong : {0.0, -1.0}) {
        Json json = card_json();
        json["adamw"][0]["ms"]["low"] = wrong;
        EXPECT_FALSE(card_from_json(json.dump())) << wrong;
    }
    Json unordered = card_json();
    unordered["copy"]["gb_per_s"]["high"] = 1.0;
    EXPECT_FALSE(card_from_json(unordered.dump()));
}

double predicted(const WantedStep& step) {
    const auto prediction = predict_fused(card(), step);
    EXPECT_TRUE(prediction);
    return prediction ? prediction->milliseconds : 0;
}

// By these rows a launch of 36 tensors takes 0.01 ms if they have 1000 elements each, 0.02 with
// 10000 and 0.1 with 65536; one of 320 full blocks (20 tensors of 1e6) takes 0.16.
TEST(PredictFused, GivesWhatWasMeasuredThere) {
    EXPECT_NEAR(predicted({.elements = 65536000, .tensors = 1000}), 2.8, 1e-9);
    EXPECT_NEAR(predicted({.elements = 1000000000, .tensors = 1000}), 8.0, 1e-9);
}

TEST(PredictFused, CostsAsMuchForEachLaunch) {
    EXPECT_NEAR(predicted({.elements = 720 * 65536, .tensors = 720}), 2.0, 1e-9);
    EXPECT_NEAR(predicted({.elements = 100000000, .tensors = 100}), 0.8, 1e-9);
}

TEST(PredictFused, APartialLaunchTakesAsLongAsItsLargestBlock) {
    EXPECT_NEAR(predicted({.elements = 21000000, .tensors = 21}), 0.16 + 0.1, 1e-9);
}

TEST(PredictFused, LiesOnTheLineBetweenItsNeighbours) {
    const double each = (10000 + 65536) / 2.0;
    EXPECT_NEAR(predicted({.elements = static_cast<std::uint64_t>(each) * 720, .tensors = 720}),
                20 * (0.02 + 0.1) / 2, 1e-6);
}

TEST(PredictFused, PacksTensorsInTheirOrder) {
    const std::vector<TensorRun> apart{{1000000, 20}, {1000, 36}};
    EXPECT_NEAR(predicted({.elements = 20036000, .tensors = 56, .runs = apart}), 0.16 + 0.01, 1e-9);
    // The small ones fit into the launch of the large ones, but for a large one's last blocks.
    const std::vector<TensorRun> mixed{{1000, 10}, {1000000, 20}};
    EXPECT_NEAR(predicted({.elements = 20010000, .tensors = 30, .runs = mixed}), 0.16 + 0.1, 3e-3);
}

TEST(PredictFused, CountsTheErrorAtTheSizesThatCheck) {
    const WantedStep step{.elements = 65536000, .tensors = 1000};
    EXPECT_DOUBLE_EQ(predict_fused(card(), step)->error, 0.05);
    Json json = card_json();
    json["checks"] = {row("fused", 720 * 65536, 720, 2.0), row("fused", 720 * 65536, 720, 2.5),
                      row("fused", 1000, 10, 0.66)};
    EXPECT_NEAR(predict_fused(card_from_json(json.dump()).value(), step)->error, 0.05 + 0.2, 1e-9);
    json["checks"][1]["double_math"] = true;  // of steps that are launched otherwise
    EXPECT_NEAR(predict_fused(card_from_json(json.dump()).value(), step)->error, 0.05, 1e-9);
}

TEST(PredictFused, IsSilentOfTensorsThatDoNotComeOutEven) {
    EXPECT_FALSE(
        predict_fused(card(), {.elements = 30000060, .tensors = 30, .runs = {{1000002, 30}}}));
    EXPECT_TRUE(predict_fused(
        card(), {.elements = 30000003, .tensors = 31, .runs = {{1000000, 30}, {3, 1}}}));
}

TEST(PredictFused, TakesFloat16AsBfloat16) {
    Json json = card_json();
    for (Json& each : json["adamw"]) {
        each["dtype"] = "bfloat16";
    }
    const Card half = card_from_json(json.dump()).value();
    EXPECT_TRUE(predict_fused(half, {.elements = 100000000, .tensors = 10, .dtype = "float16"}));
    EXPECT_FALSE(predict_fused(half, {.elements = 100000000, .tensors = 10, .dtype = "float32"}));
}

TEST(PredictFused, IsSilentOutsideWhatWasMeasured) {
    EXPECT_FALSE(predict_fused(card(), {.elements = 19999999, .tensors = 10}));
    EXPECT_FALSE(predict_fused(card(), {.elements = ~std::uint64_t{0}, .tensors = 10}));
    EXPECT_FALSE(predict_fused(card(), {.elements = 100000000, .tensors = 0}));
    EXPECT_FALSE(predict_fused(card(), {.elements = 100000000, .tensors = 100000001}));
    EXPECT_FALSE(predict_fused(card(), {.elements = 100000000, .tensors = 10, .dtype = "float64"}));
    EXPECT_FALSE(
        predict_fused(card(), {.elements = 100000000, .tensors = 10, .large_tables = true}));
}

TEST(PredictLimit, IsThatOfOurOwnKernel) {
    const auto prediction = predict_limit(card(), {.elements = 1000000000, .tensors = 1000});
    ASSERT_TRUE(prediction);
    EXPECT_NEAR(*prediction, 6.6, 1e-12);
    EXPECT_NEAR(*predict_limit(card(), {.elements = 2000000000, .tensors = 200}), 13.2, 1e-9);
}

class FindCard : public testing::Test {
  protected:
    FindCard() : root_{fs::temp_directory_path() / ("cudiag-cards-" + std::to_string(getpid()))} {
        fs::create_directories(root_ / "first");
        fs::create_directories(root_ / "second");
    }

    ~FindCard() override { fs::remove_all(root_); }

    void write(const char* directory, const std::string& uuid, const std::string& made) const {
        Json json = card_json();
        json["card"]["uuid"] = uuid;
        json["made"] = made;
        std::ofstream{root_ / directory / (uuid + ".json")} << json.dump();
    }

    [[nodiscard]] std::vector<std::string> directories() const {
        return {(root_ / "first").string(), (root_ / "absent").string(),
                (root_ / "second").string()};
    }

    fs::path root_;
};

TEST_F(FindCard, TakesTheFirstDirectoryThatHasIt) {
    write("first", "GPU-1", "2026-01-01T00:00:00Z");
    write("second", "GPU-1", "2026-02-01T00:00:00Z");
    write("second", "GPU-2", "2026-03-01T00:00:00Z");
    EXPECT_EQ(find_card(directories(), "GPU-1", "", "").value().made, "2026-01-01T00:00:00Z");
    EXPECT_EQ(find_card(directories(), "GPU-2", "", "").value().made, "2026-03-01T00:00:00Z");
    EXPECT_FALSE(find_card(directories(), "GPU-3", "NVIDIA H200", "580.159.04"));
}

TEST_F(FindCard, TakesTheNewestOfTheNameWithoutAUuid) {
    write("first", "GPU-1", "2026-01-01T00:00:00Z");
    write("second", "GPU-2", "2026-03-01T00:00:00Z");
    EXPECT_EQ(find_card(directories(), "", "NVIDIA H200", "580.159.04").value().uuid, "GPU-2");
    EXPECT_FALSE(find_card(directories(), "", "NVIDIA H200", "570.1"));
    EXPECT_FALSE(find_card(directories(), "", "NVIDIA A100", "580.159.04"));
}

TEST_F(FindCard, PassesOverWhatIsNoCard) {
    std::ofstream{root_ / "first" / "GPU-1.json"} << "{";
    write("second", "GPU-1", "2026-02-01T00:00:00Z");
    fs::create_directories(root_ / "first" / "GPU-9.json");
    EXPECT_EQ(find_card(directories(), "GPU-1", "", "").value().made, "2026-02-01T00:00:00Z");
    EXPECT_FALSE(find_card(directories(), "../second/GPU-1", "", ""));
}

}  // namespace
}  // namespace cudiag
