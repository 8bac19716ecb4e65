#include "present/profile_charts.h"

#include <fmt/core.h>
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include "present/grouped.h"
#include "present/profile_text.h"
#include "present/terminal.h"

namespace cudiag {
namespace {

constexpr std::size_t kMostBars = 240;  // more steps share bars
constexpr double kHighestBar = 4;       // times the median; what is longer is cut, and marked
constexpr double kWidth = 1000;         // of a lane, in its own units
constexpr double kNeighbours = 0.2;     // boxes that are nearer are drawn as one
constexpr double kThinnest = 0.6;       // a box that can be seen
constexpr std::size_t kColours = 8;     // of profile.css
constexpr double kPercent = 100;
constexpr double kShortest = 1;  // ns: what is drawn has some length

double span_of(const OptimizerStep& step) {
    return static_cast<double>(step.device_end - step.device_begin);
}

std::string legend_item(const std::string& colour, const std::string& text) {
    return fmt::format("<li><i class=\"{}\"></i>{}</li>\n", colour, escaped(text));
}

// Several steps in one bar: the longest of them is shown.
std::vector<const OptimizerStep*> bars_of(const Profile& profile, std::size_t optimizer) {
    std::vector<const OptimizerStep*> steps;
    for (const OptimizerStep& step : profile.steps) {
        if (step.optimizer == optimizer && step.profiled && step.operations != 0) {
            steps.push_back(&step);
        }
    }
    const std::size_t share = (steps.size() + kMostBars - 1) / kMostBars;
    std::vector<const OptimizerStep*> bars;
    for (std::size_t i = 0; i < steps.size(); i += share) {
        const auto begin = steps.begin() + static_cast<std::ptrdiff_t>(i);
        const auto end =
            steps.begin() + static_cast<std::ptrdiff_t>(std::min(i + share, steps.size()));
        bars.push_back(*std::max_element(begin, end, [](const auto* one, const auto* other) {
            return span_of(*one) < span_of(*other);
        }));
    }
    return bars;
}

// The kernels of a step by the time they take in it, the longest first; their places are their
// colours.
std::vector<std::pair<std::size_t, double>> names_by_time(const Profile& profile,
                                                          std::size_t step) {
    std::map<std::size_t, double> times;
    for (const DeviceOperation& operation : profile.operations) {
        if (operation.step == static_cast<std::int64_t>(step)) {
            times[operation.name] += static_cast<double>(operation.end - operation.begin);
        }
    }
    std::vector<std::pair<std::size_t, double>> sorted{times.begin(), times.end()};
    std::stable_sort(sorted.begin(), sorted.end(),
                     [](const auto& one, const auto& other) { return one.second > other.second; });
    return sorted;
}

std::string colour_at(std::size_t place) {
    return place < kColours ? fmt::format("c{}", place) : "rest";
}

// What is drawn of one or more operations of one colour that lie side by side.
struct Box {
    double begin = 0;
    double end = 0;
    std::string colour;
    std::string name;
    double time = 0;  // ns
    std::size_t count = 0;
};

std::string drawn(const Box& box) {
    const std::string title = box.count == 1
                                  ? fmt::format("{}, {}", box.name, nanoseconds_text(box.time))
                                  : fmt::format("{} and others, {} operations, {}", box.name,
                                                box.count, nanoseconds_text(box.time));
    return fmt::format(
        "<rect class=\"{}\" x=\"{:.2f}\" y=\"1\" width=\"{:.2f}\" "
        "height=\"18\"><title>{}</title></rect>\n",
        box.colour, box.begin, std::max(box.end - box.begin, kThinnest), escaped(title));
}

using Lanes =
    std::map<std::pair<std::uint32_t, std::uint32_t>, std::vector<Box>>;  // device, stream

Lanes lanes_of(const Profile& profile, std::size_t step, double begin, double length,
               const std::map<std::size_t, std::string>& colours) {
    Lanes lanes;
    for (const DeviceOperation& operation : profile.operations) {
        const double from = (static_cast<double>(operation.begin) - begin) / length * kWidth;
        const double to = (static_cast<double>(operation.end) - begin) / length * kWidth;
        if (to < 0 || from > kWidth) {
            continue;
        }
        const bool ours = operation.step == static_cast<std::int64_t>(step);
        const auto colour = colours.find(operation.name);
        Box box{.begin = std::max(from, 0.0),
                .end = std::min(to, kWidth),
                .colour = ours && colour != colours.end() ? colour->second : "rest",
                .name = profile.names[operation.name],
                .time = static_cast<double>(operation.end - operation.begin),
                .count = 1};
        std::vector<Box>& lane = lanes[{operation.device, operation.stream}];
        if (!lane.empty() && lane.back().colour == box.colour &&
            box.begin - lane.back().end < kNeighbours) {
            lane.back().end = std::max(lane.back().end, box.end);
            lane.back().time += box.time;
            ++lane.back().count;
        } else {
            lane.push_back(std::move(box));
        }
    }
    return lanes;
}

std::string bar(const std::string& name, const std::string& kind, double share,
                const std::string& figure) {
    return fmt::format(
        "<div class=\"bar\"><span>{}<br><b>{}</b></span><span><i class=\"{}\" "
        "style=\"width:{:.1f}%\"></i></span></div>\n",
        escaped(name), escaped(figure), kind, std::clamp(share, 0.0, 1.0) * kPercent);
}

}  // namespace

std::string escaped(const std::string& text) {
    std::string result;
    for (const char byte : printable(text)) {
        switch (byte) {
            case '&':
                result += "&amp;";
                break;
            case '<':
                result += "&lt;";
                break;
            case '>':
                result += "&gt;";
                break;
            case '"':
                result += "&quot;";
                break;
            case '\'':
                result += "&#39;";
                break;
            default:
                result += byte;
        }
    }
    return result;
}

std::string steps_chart(const Profile& profile, std::size_t optimizer) {
    const auto bars = bars_of(profile, optimizer);
    if (bars.empty()) {
        return "<p class=\"quiet\">No step was recorded on the device.</p>\n";
    }
    double longest = 0;
    for (const OptimizerStep* step : bars) {
        longest = std::max(longest, span_of(*step));
    }
    const double median = profile.optimizers[optimizer].span.median;
    const double top =
        std::max(median > 0 ? std::min(longest, median * kHighestBar) : longest, kShortest);
    std::string shapes;
    bool cut = false;
    for (std::size_t i = 0; i < bars.size(); ++i) {
        const OptimizerStep& step = *bars[i];
        const double whole = std::min(span_of(step) / top, 1.0) * kPercent;
        const double busy = std::min(static_cast<double>(step.device_busy) / top, 1.0) * kPercent;
        const std::string title =
            fmt::format("step {}: busy {}, idle {}", step.number,
                        nanoseconds_text(static_cast<double>(step.device_busy)),
                        nanoseconds_text(static_cast<double>(step.gaps)));
        shapes += fmt::format(
            "<g><title>{}</title><rect class=\"gap\" x=\"{}\" y=\"{:.2f}\" width=\"0.85\" "
            "height=\"{:.2f}\"/>"
            "<rect class=\"busy\" x=\"{}\" y=\"{:.2f}\" width=\"0.85\" height=\"{:.2f}\"/>",
            escaped(title), i, kPercent - whole, whole, i, kPercent - busy, busy);
        if (span_of(step) > top) {
            shapes += fmt::format(
                "<rect class=\"cut\" x=\"{}\" y=\"0\" width=\"0.85\" height=\"3\"/>", i);
            cut = true;
        }
        shapes += "</g>\n";
    }
    return fmt::format(
        "<figure><div class=\"axis\"><span>{}</span></div>\n"
        "<svg class=\"chart\" role=\"img\" aria-label=\"Time on the device of each of {} steps; "
        "the median is {}\" "
        "viewBox=\"0 0 {} 100\" preserveAspectRatio=\"none\">\n{}</svg>\n"
        "<div class=\"axis\"><span>step {}</span><span>step {}</span></div>\n"
        "<ul class=\"legend\">\n{}{}{}</ul></figure>\n",
        nanoseconds_text(top), bars.size(), nanoseconds_text(median), bars.size(), shapes,
        bars.front()->number, bars.back()->number,
        legend_item("busy", "the device works on the step"),
        legend_item("gap", "it waits between the step's operations"),
        cut ? legend_item("cut", "longer than is drawn, up to " + nanoseconds_text(longest)) : "");
}

std::string timeline_chart(const Profile& profile, std::size_t step) {
    const OptimizerStep& drawn_step = profile.steps[step];
    const double margin = 0.05 * span_of(drawn_step);
    const double begin = static_cast<double>(drawn_step.device_begin) - margin;
    const double length = std::max(span_of(drawn_step) + 2 * margin, kShortest);
    const auto names = names_by_time(profile, step);
    std::map<std::size_t, std::string> colours;
    std::string legend;
    for (std::size_t i = 0; i < names.size(); ++i) {
        colours[names[i].first] = colour_at(i);
        if (i < kColours) {
            legend += legend_item(colour_at(i), fmt::format("{}, {}", profile.names[names[i].first],
                                                            nanoseconds_text(names[i].second)));
        }
    }
    legend += legend_item("rest", "all else on the GPU");
    std::string lanes;
    for (const auto& [place, boxes] : lanes_of(profile, step, begin, length, colours)) {
        std::string shapes;
        for (const Box& box : boxes) {
            shapes += drawn(box);
        }
        lanes += fmt::format(
            "<div class=\"axis\"><span>GPU {}, stream {}</span></div>\n"
            "<svg class=\"lane\" role=\"img\" aria-label=\"Operations of GPU {}, stream {}\" "
            "viewBox=\"0 0 {} 20\" preserveAspectRatio=\"none\">\n{}</svg>\n",
            place.first, place.second, place.first, place.second, kWidth, shapes);
    }
    return fmt::format(
        "<figure>\n{}<div class=\"axis\"><span>0</span><span>{}</span></div>\n"
        "<ul class=\"legend\">\n{}</ul></figure>\n",
        lanes, nanoseconds_text(length), legend);
}

std::string share_chart(const Optimizer& optimizer) {
    const double busy = optimizer.device.median;
    const double gaps = optimizer.gaps.median;
    const double whole = std::max(optimizer.period.median, busy + gaps);
    if (whole <= 0) {
        return {};
    }
    const double rest = whole - busy - gaps;
    const auto part = [&](const char* colour, double time) {
        return fmt::format("<span class=\"{}\" style=\"width:{:.2f}%\"></span>", colour,
                           time / whole * kPercent);
    };
    const auto item = [&](const char* colour, const char* what, double time) {
        return legend_item(colour, fmt::format("{}: {} ({:.0f} %)", what, nanoseconds_text(time),
                                               time / whole * kPercent));
    };
    return fmt::format(
        "<figure><div class=\"stack\" aria-hidden=\"true\">{}{}{}</div>\n<ul "
        "class=\"legend\">\n{}{}{}</ul></figure>\n",
        part("busy", busy), part("gap", gaps), part("rest", rest),
        item("busy", "the optimizer's operations", busy), item("gap", "idle between them", gaps),
        item("rest", "all else of the training step", rest));
}

std::string roofline_chart(const Profile& profile, const Optimizer& optimizer) {
    if (!optimizer.traffic.known || !optimizer.gb_per_s) {
        return {};
    }
    double copy = 0;
    for (const ProfiledDevice& device : profile.devices) {
        copy = device.copy_gb_per_s.value_or(copy);
    }
    const auto bytes = static_cast<double>(optimizer.traffic.total());
    const auto rate_at = [&](double milliseconds) { return bytes / milliseconds / 1e6; };
    const double fused = optimizer.fused_ms ? rate_at(*optimizer.fused_ms) : 0;
    const double limit = optimizer.limit_ms ? rate_at(*optimizer.limit_ms) : 0;
    const double top = std::max({copy, fused, limit, *optimizer.gb_per_s});
    const auto row = [&](const char* name, const char* kind, double rate) {
        return rate <= 0
                   ? std::string{}
                   : bar(name, kind, rate / top,
                         copy > 0
                             ? fmt::format("{:.0f} GB/s, {:.0f} %", rate, rate / copy * kPercent)
                             : fmt::format("{:.0f} GB/s", rate));
    };
    return fmt::format(
        "<figure>\n{}{}{}{}<figcaption>A step of it does less than one operation for each byte "
        "that it moves, so memory is "
        "the roof. It reads and writes at least {} bytes a step.{}</figcaption></figure>\n",
        row("a plain copy on this card", "roof", copy), row("cudiag's own AdamW", "other", limit),
        row("torch's fused, predicted", "other", fused),
        row("this run", "run", *optimizer.gb_per_s), grouped(optimizer.traffic.total()),
        copy > 0
            ? ""
            : " What this card can do is not known: run <code>cudiag bench adam</code> on it.");
}

}  // namespace cudiag
