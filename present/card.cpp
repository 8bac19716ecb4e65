#include "present/card.h"

#include <fmt/core.h>
#include <fmt/format.h>

#include <algorithm>

#include "diagnose/say.h"
#include "present/grouped.h"
#include "present/painter.h"
#include "present/spoken.h"

namespace cudiag {
namespace {

constexpr double kMega = 1e6;
constexpr double kPercent = 100;

bool is_same_size(const AdamWTime& one, const AdamWTime& other) {
    return one.dtype == other.dtype && one.elements == other.elements &&
           one.tensors == other.tensors;
}

// The time of torch's way of launching at the size of `ours`, computing in float; "-" if it was not
// measured.
std::string as_torch(const Card& card, const AdamWTime& ours, bool large_tables) {
    const auto row =
        std::find_if(card.adamw.begin(), card.adamw.end(), [&](const AdamWTime& other) {
            return other.implementation == "fused" && is_same_size(ours, other) &&
                   other.large_tables == large_tables && !other.double_math;
        });
    return row == card.adamw.end() ? "-" : fmt::format("{:.3f}", row->milliseconds.median);
}

bool is_shown(const Card& card, const AdamWTime& row) {
    return row.implementation == "cudiag" &&
           (row.dtype == "float32" ||
            std::none_of(card.adamw.begin(), card.adamw.end(), [&](const AdamWTime& other) {
                return other.implementation == "cudiag" && other.dtype == row.dtype &&
                       (other.elements > row.elements ||
                        (other.elements == row.elements && other.tensors < row.tensors));
            }));
}

}  // namespace

std::string render_card(const Card& card, const Style& style) {
    std::string text =
        spoken(say("{}, driver {}, {}", Painter{style}.bold(printable(card.name)),
                   card.driver.empty() ? "?" : printable(card.driver), printable(card.uuid))) +
        "\n";
    const Spread& copy = card.copy_gb_per_s;
    text += spoken(say("copy: {:.0f} GB/s read and written (quartiles {:.0f} and {:.0f})",
                       copy.median, copy.low, copy.high)) +
            "\n\n";
    text += fmt::format("{:<16}{:>14} {:>7}  {:>9} {:>6} {:>7}  {:>20}\n",
                        spoken(say("AdamW, ms a step")), spoken_label("elements"),
                        spoken_label("tensors"), spoken_label("ours"), "GB/s",
                        spoken_label("of copy"), spoken(say("as torch's fused *")));
    for (const AdamWTime& row : card.adamw) {
        if (!is_shown(card, row)) {
            continue;
        }
        const double rate = static_cast<double>(row.bytes) / row.milliseconds.median / kMega;
        text += fmt::format("{:<16}{:>14} {:>7}  {:>9.3f} {:>6.0f} {:>5.0f} %  {:>10}{:>10}\n",
                            printable(row.dtype), grouped(row.elements), grouped(row.tensors),
                            row.milliseconds.median, rate, kPercent * rate / copy.median,
                            as_torch(card, row, false), as_torch(card, row, true));
    }
    text += spoken(say("* launched 320 and 2240 chunks at once, as torch does "
                       "(docs/benchmarks.md); computing in float")) +
            "\n";
    return text;
}

}  // namespace cudiag
