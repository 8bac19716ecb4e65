#include "diagnose/optimizer/card.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <system_error>

namespace cudiag {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

constexpr int kSchema = 1;
// The rows of so many tensors are made for predictions (kernels/plan.cpp).
constexpr std::uint64_t kCurveTensors = 1000;
// With fewer, what a launch costs by itself decides; they take 0.16 ms on an H200.
constexpr std::uint64_t kFewestElements = 20'000'000;
// Of a tensor: from so many on torch's launches are full, and time is proportional to elements.
constexpr double kFullLaunches = 9 * 65536;
// A file of some 200 rows has 50 kB.
constexpr std::uintmax_t kMostBytes = 16 << 20;

Spread spread_from(const Json& json) {
    return {.low = json.at("low"), .median = json.at("median"), .high = json.at("high")};
}

bool is_sound(const Spread& spread) {
    return spread.low > 0 && spread.low <= spread.median && spread.median <= spread.high &&
           std::isfinite(spread.high);
}

AdamWTime time_from(const Json& json) {
    return {.implementation = json.at("implementation"),
            .dtype = json.at("dtype"),
            .large_tables = json.value("large_tables", false),
            .double_math = json.value("double_math", false),
            .elements = json.at("elements"),
            .tensors = json.at("tensors"),
            .launches = json.at("launches"),
            .bytes = json.at("bytes"),
            .milliseconds = spread_from(json.at("ms"))};
}

Card card_from(const Json& json) {
    const Json& about = json.at("card");
    Card card{.uuid = about.at("uuid"),
              .name = about.at("name"),
              .driver = about.value("driver", ""),
              .made = json.at("made"),
              .copy_gb_per_s = spread_from(json.at("copy").at("gb_per_s")),
              .adamw = {},
              .checks = {},
              .fused_error = json.at("fused_error")};
    for (const Json& row : json.at("adamw")) {
        card.adamw.push_back(time_from(row));
    }
    for (const Json& row : json.value("checks", Json::array())) {
        card.checks.push_back(time_from(row));
    }
    return card;
}

bool are_sound(const std::vector<AdamWTime>& rows) {
    return std::all_of(rows.begin(), rows.end(), [](const AdamWTime& row) {
        return row.elements > 0 && row.tensors > 0 && is_sound(row.milliseconds);
    });
}

bool is_sound(const Card& card) {
    return is_sound(card.copy_gb_per_s) && card.fused_error >= 0 &&
           std::isfinite(card.fused_error) && are_sound(card.adamw) && are_sound(card.checks);
}

std::optional<Card> read_card(const fs::path& path) {
    std::error_code error;
    if (!fs::is_regular_file(path, error) || fs::file_size(path, error) > kMostBytes) {
        return std::nullopt;
    }
    std::ifstream file{path, std::ios::binary};
    return card_from_json(std::string{std::istreambuf_iterator<char>{file}, {}});
}

// "GPU-4d2a…": nothing that could lead out of the directory.
bool is_file_name(const std::string& uuid) {
    return !uuid.empty() && uuid.find('/') == std::string::npos && uuid.front() != '.';
}

// On the straight line through two measured points, between them or beyond: a step costs something
// for each element, each tensor and each launch.
double on_line(double at, double low, double low_value, double high, double high_value) {
    return low_value + (at - low) / (high - low) * (high_value - low_value);
}

// Milliseconds for each tensor, by the elements of one.
using Curve = std::map<double, double>;

// Torch launches a fixed number of tensors or chunks at once, so a step costs what its tensors
// cost: time = tensors * h(elements of one). The rows with many tensors give h.
template <typename Wanted>
Curve curve_of(const Card& card, Wanted wanted) {
    Curve curve;
    for (const AdamWTime& row : card.adamw) {
        if (row.tensors == kCurveTensors && wanted(row)) {
            const auto tensors = static_cast<double>(row.tensors);
            curve[static_cast<double>(row.elements) / tensors] = row.milliseconds.median / tensors;
        }
    }
    return curve;
}

// The time of one tensor of so many elements. The curve has two points at least.
double time_of_one(const Curve& curve, double elements) {
    const auto& [smallest, least] = *curve.begin();
    const auto& [largest, most] = *curve.rbegin();
    if (elements <= smallest) {
        return least;  // what a tensor costs by itself
    }
    if (elements >= largest && largest >= kFullLaunches) {
        return most * elements / largest;
    }
    auto above = curve.lower_bound(elements);
    if (above == curve.end()) {
        --above;
    }
    const auto below = std::prev(above);
    return on_line(elements, below->first, below->second, above->first, above->second);
}

std::optional<Prediction> predict(const Card& card, const PredictedStep& step, const Curve& curve) {
    if (curve.size() < 2 || step.elements < kFewestElements || step.tensors == 0 ||
        step.tensors > step.elements) {
        return std::nullopt;
    }
    const auto tensors = static_cast<double>(step.tensors);
    return Prediction{
        .milliseconds = tensors * time_of_one(curve, static_cast<double>(step.elements) / tensors),
        .error = card.fused_error};
}

// 16 bits cost the same whichever way they are shared out.
std::string measured_dtype(const std::string& dtype) {
    return dtype == "float16" ? "bfloat16" : dtype == "float16+master" ? "bfloat16+master" : dtype;
}

}  // namespace

std::optional<Card> card_from_json(std::string_view text) {
    const Json json = Json::parse(text, nullptr, false);
    if (!json.is_object()) {
        return std::nullopt;
    }
    try {
        if (json.at("schema") != kSchema) {
            return std::nullopt;
        }
        Card card = card_from(json);
        return is_sound(card) ? std::optional{std::move(card)} : std::nullopt;
    } catch (const Json::exception&) {
        return std::nullopt;  // a key is absent or of another type
    }
}

std::optional<Card> find_card(const std::vector<std::string>& directories, const std::string& uuid,
                              const std::string& name, const std::string& driver) {
    if (is_file_name(uuid)) {
        for (const std::string& directory : directories) {
            if (auto card = read_card(fs::path{directory} / (uuid + ".json"))) {
                return card;
            }
        }
    }
    if (!uuid.empty()) {
        return std::nullopt;
    }
    std::optional<Card> newest;
    for (const std::string& directory : directories) {
        std::error_code error;
        for (const auto& entry : fs::directory_iterator(directory, error)) {
            auto card =
                entry.path().extension() == ".json" ? read_card(entry.path()) : std::nullopt;
            if (card && card->name == name && card->driver == driver &&
                (!newest || newest->made < card->made)) {
                newest = std::move(card);
            }
        }
    }
    return newest;
}

std::optional<Prediction> predict_fused(const Card& card, const PredictedStep& step) {
    return predict(card, step, curve_of(card, [&](const AdamWTime& row) {
                       return row.implementation == "fused" &&
                              row.dtype == measured_dtype(step.dtype) &&
                              row.large_tables == step.large_tables &&
                              row.double_math == step.double_math;
                   }));
}

std::optional<Prediction> predict_limit(const Card& card, const PredictedStep& step) {
    return predict(card, step, curve_of(card, [&](const AdamWTime& row) {
                       return row.implementation == "cudiag" &&
                              row.dtype == measured_dtype(step.dtype);
                   }));
}

double prediction_error(const Card& card) {
    double worst = 0;
    for (const AdamWTime& check : card.checks) {
        const PredictedStep step{.elements = check.elements,
                                 .tensors = check.tensors,
                                 .dtype = check.dtype,
                                 .large_tables = check.large_tables,
                                 .double_math = check.double_math};
        const auto predicted = check.implementation == "cudiag" ? predict_limit(card, step)
                                                                : predict_fused(card, step);
        if (predicted) {
            worst =
                std::max(worst, std::abs(predicted->milliseconds / check.milliseconds.median - 1));
        }
    }
    return worst;
}

}  // namespace cudiag
