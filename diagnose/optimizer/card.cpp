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
// Tensors beyond the measured numbers cost a launch or a block each, which is not proportional.
constexpr double kFurtherTensors = 2;
constexpr double kFewerElements = 0.5;
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
              .fused_error = json.at("fused_error")};
    for (const Json& row : json.at("adamw")) {
        card.adamw.push_back(time_from(row));
    }
    return card;
}

bool is_sound(const Card& card) {
    return is_sound(card.copy_gb_per_s) && card.fused_error >= 0 &&
           std::isfinite(card.fused_error) &&
           std::all_of(card.adamw.begin(), card.adamw.end(), [](const AdamWTime& row) {
               return row.elements > 0 && row.tensors > 0 && is_sound(row.milliseconds);
           });
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

// Straight between two measured points on logarithmic axes: costs are a sum of a fixed part and a
// proportional one, whose slopes there are 0 and 1.
double between(double at, double low, double low_value, double high, double high_value) {
    if (low == high) {
        return low_value;
    }
    const double share = std::log(at / low) / std::log(high / low);
    return std::exp(std::log(low_value) + share * std::log(high_value / low_value));
}

using Curve = std::map<double, double>;  // elements to milliseconds, or tensors to milliseconds

std::optional<double> at_elements(const Curve& curve, double elements) {
    if (elements < curve.begin()->first * kFewerElements) {
        return std::nullopt;
    }
    const auto above = curve.lower_bound(elements);
    if (above == curve.end()) {
        return curve.rbegin()->second * elements / curve.rbegin()->first;
    }
    if (above == curve.begin()) {
        return above->second;  // a floor is not undercut
    }
    const auto below = std::prev(above);
    return between(elements, below->first, below->second, above->first, above->second);
}

std::optional<double> at_tensors(const Curve& curve, double tensors) {
    const auto above = curve.lower_bound(tensors);
    if (above == curve.begin()) {
        return above->second;
    }
    const auto below = std::prev(above);
    if (above == curve.end()) {
        return tensors <= below->first * kFurtherTensors ? std::optional{below->second}
                                                         : std::nullopt;
    }
    return between(tensors, below->first, below->second, above->first, above->second);
}

template <typename Wanted>
std::optional<double> interpolate(const Card& card, const PredictedStep& step, Wanted wanted) {
    std::map<double, Curve> by_tensors;
    for (const AdamWTime& row : card.adamw) {
        if (wanted(row)) {
            by_tensors[static_cast<double>(row.tensors)][static_cast<double>(row.elements)] =
                row.milliseconds.median;
        }
    }
    Curve curve;
    for (const auto& [tensors, elements] : by_tensors) {
        if (const auto time = at_elements(elements, static_cast<double>(step.elements))) {
            curve[tensors] = *time;
        }
    }
    if (curve.empty() || step.tensors == 0 || step.tensors > step.elements) {
        return std::nullopt;
    }
    return at_tensors(curve, static_cast<double>(step.tensors));
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
    const auto time = interpolate(card, step, [&](const AdamWTime& row) {
        return row.implementation == "fused" && row.dtype == step.dtype &&
               row.large_tables == step.large_tables && row.double_math == step.double_math;
    });
    return time ? std::optional{Prediction{.milliseconds = *time, .error = card.fused_error}}
                : std::nullopt;
}

std::optional<Prediction> predict_limit(const Card& card, const PredictedStep& step) {
    const auto time = interpolate(card, step, [&](const AdamWTime& row) {
        return row.implementation == "cudiag" && row.dtype == step.dtype;
    });
    return time ? std::optional{Prediction{.milliseconds = *time, .error = card.fused_error}}
                : std::nullopt;
}

}  // namespace cudiag
