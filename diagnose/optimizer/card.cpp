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

// On the straight line through two measured points: a step costs something for each element, each
// tensor and each launch.
double on_line(double at, double low, double low_value, double high, double high_value) {
    return low_value + (at - low) / (high - low) * (high_value - low_value);
}

// Milliseconds by a number of elements.
using Curve = std::map<double, double>;

// Between the points of the curve, and its ends beyond them. It has one point at least.
double between(const Curve& curve, double elements) {
    const auto above = curve.lower_bound(elements);
    if (above == curve.begin()) {
        return above->second;
    }
    const auto below = std::prev(above);
    return above == curve.end()
               ? below->second
               : on_line(elements, below->first, below->second, above->first, above->second);
}

// The same, but in proportion beyond the ends.
double in_proportion(const Curve& curve, double elements) {
    const auto& [smallest, least] = *curve.begin();
    const auto& [largest, most] = *curve.rbegin();
    return elements < smallest  ? least * elements / smallest
           : elements > largest ? most * elements / largest
                                : between(curve, elements);
}

// One launch of torch's fused kernel.
struct Launch {
    double elements = 0;  // of all its blocks
    double largest = 0;   // of one block
};

// What one launch of it takes: tensors and chunks (multi_tensor_apply of torch's
// MultiTensorApply.cuh, for four lists of tensors; the sizes are those of kernels/chunked_table.h).
struct Tables {
    std::uint64_t tensors, blocks;
};

constexpr Tables kSmallTables{36, 320};
constexpr Tables kLargeTables{252, 2240};
constexpr std::uint64_t kChunk = 65536;  // elements of a block, at most

// The launches of a step over these tensors, in the order in which torch packs them.
std::vector<Launch> launches_of(const std::vector<TensorRun>& runs, const Tables& tables) {
    std::vector<Launch> launches;
    Launch open;
    std::uint64_t tensors = 0;
    std::uint64_t blocks = 0;
    const auto close = [&] {
        launches.push_back(open);
        open = {};
        blocks = 0;
    };
    for (const TensorRun& run : runs) {
        for (std::uint64_t i = 0; i < run.tensors && run.elements > 0; ++i) {
            ++tensors;
            for (std::uint64_t left = run.elements; left > 0;) {
                const auto block = static_cast<double>(std::min(left, kChunk));
                left -= std::min(left, kChunk);
                open.elements += block;
                open.largest = std::max(open.largest, block);
                ++blocks;
                if (blocks == tables.blocks || (tensors == tables.tensors && left == 0)) {
                    close();
                    tensors = left == 0 ? 0 : 1;
                }
            }
        }
    }
    if (blocks > 0) {
        close();
    }
    return launches;
}

// What launches take on this card. Of a launch either its elements decide, by the memory's
// bandwidth, or its largest block, which one multiprocessor works through alone.
struct LaunchTimes {
    Curve by_elements;
    Curve by_block;

    bool known() const { return by_elements.size() > 1 && !by_block.empty(); }

    double of(const Launch& launch) const {
        return std::max(in_proportion(by_elements, launch.elements),
                        between(by_block, launch.largest));
    }
};

// From the rows with many tensors, whose launches are alike but for the last.
LaunchTimes launch_times(const Card& card, const WantedStep& step, const std::string& dtype) {
    LaunchTimes times;
    for (const AdamWTime& row : card.adamw) {
        if (row.implementation != "fused" || row.dtype != dtype || row.tensors != kCurveTensors ||
            row.double_math != step.double_math) {
            continue;
        }
        const std::uint64_t each = row.elements / row.tensors;
        const Tables& tables = row.large_tables ? kLargeTables : kSmallTables;
        const std::vector<Launch> launches = launches_of({{each, row.tensors}}, tables);
        const double full = launches.front().elements;
        const double count = each <= kChunk ? static_cast<double>(launches.size())
                                            : static_cast<double>(row.elements) / full;
        if (row.large_tables == step.large_tables) {
            times.by_elements[full] = row.milliseconds.median / count;
        }
        // With few blocks in a launch, none waits for another's use of the memory.
        if (!row.large_tables && each <= kChunk) {
            times.by_block[static_cast<double>(each)] = row.milliseconds.median / count;
        }
    }
    return times;
}

bool can_be(const WantedStep& step) {
    constexpr std::uint64_t kMostElements = 1'000'000'000'000;  // some 1e7 blocks
    return step.elements >= kFewestElements && step.elements <= kMostElements && step.tensors > 0 &&
           step.tensors <= step.elements;
}

// Of such tensors torch's kernel reads and writes one element at a time, since the four at once do
// not come out even; that is not measured.
bool come_out_even(const std::vector<TensorRun>& runs, std::uint64_t elements) {
    constexpr std::uint64_t kAtOnce = 4;
    constexpr std::uint64_t kShare = 20;
    std::uint64_t uneven = 0;
    for (const TensorRun& run : runs) {
        uneven += run.elements % kAtOnce == 0 ? 0 : run.elements * run.tensors;
    }
    return uneven * kShare <= elements;
}

// As equal as can be, if the sizes are not known.
std::vector<TensorRun> runs_of(const WantedStep& step) {
    return step.runs.empty() ? std::vector<TensorRun>{{step.elements / step.tensors, step.tensors}}
                             : step.runs;
}

double time_of(const WantedStep& step, const LaunchTimes& times) {
    double milliseconds = 0;
    for (const Launch& launch :
         launches_of(runs_of(step), step.large_tables ? kLargeTables : kSmallTables)) {
        milliseconds += times.of(launch);
    }
    return milliseconds;
}

// 16 bits cost the same whichever way they are shared out.
std::string measured_dtype(const std::string& dtype) {
    return dtype == "float16" ? "bfloat16" : dtype == "float16+master" ? "bfloat16+master" : dtype;
}

// The largest relative difference between what was measured at the sizes that check, launched as
// `like` is, and what follows for them from the others; 0 without such sizes.
double prediction_error(const Card& card, const WantedStep& like) {
    double worst = 0;
    for (const AdamWTime& check : card.checks) {
        const WantedStep step{.elements = check.elements,
                              .tensors = check.tensors,
                              .dtype = check.dtype,
                              .large_tables = check.large_tables,
                              .double_math = check.double_math};
        if (check.implementation != "fused" || step.large_tables != like.large_tables ||
            step.double_math != like.double_math || !can_be(step)) {
            continue;
        }
        const LaunchTimes times = launch_times(card, step, step.dtype);
        if (!times.known()) {
            continue;
        }
        worst = std::max(worst, std::abs(time_of(step, times) / check.milliseconds.median - 1));
    }
    return worst;
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

std::optional<Prediction> predict_fused(const Card& card, const WantedStep& step) {
    const std::string dtype = measured_dtype(step.dtype);
    const LaunchTimes times = launch_times(card, step, dtype);
    if (!can_be(step) || !times.known() || !come_out_even(step.runs, step.elements)) {
        return std::nullopt;
    }
    return Prediction{.milliseconds = time_of(step, times),
                      .error = card.fused_error + prediction_error(card, step)};
}

// Its launches take all tensors, so a step costs what its tensors cost: time = tensors * h(elements
// of one). The rows with many tensors give h.
std::optional<double> predict_limit(const Card& card, const WantedStep& step) {
    Curve curve;
    const auto many = static_cast<double>(kCurveTensors);
    for (const AdamWTime& row : card.adamw) {
        if (row.implementation == "cudiag" && row.dtype == measured_dtype(step.dtype) &&
            row.tensors == kCurveTensors) {
            curve[static_cast<double>(row.elements) / many] = row.milliseconds.median / many;
        }
    }
    if (!can_be(step) || curve.size() < 2) {
        return std::nullopt;
    }
    const auto tensors = static_cast<double>(step.tensors);
    const double each = static_cast<double>(step.elements) / tensors;
    return tensors *
           (each < curve.begin()->first ? curve.begin()->second : in_proportion(curve, each));
}

}  // namespace cudiag
