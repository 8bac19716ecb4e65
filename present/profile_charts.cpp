#include "present/profile_charts.h"

#include <fmt/core.h>
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include "diagnose/say.h"
#include "present/grouped.h"
#include "present/profile_text.h"
#include "present/spoken.h"
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

std::string legend_item(const std::string& colour, const std::string& text, Language language) {
    return fmt::format("<li><i class=\"{}\"></i>{}</li>\n", colour, told(text, language));
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
    std::size_t name = 0;  // index in Profile::names
    double time = 0;       // ns
    std::size_t count = 0;
};

std::string drawn(const Box& box, const Profile& profile, Language language) {
    const std::string& name = profile.names[box.name];
    const std::string time = nanoseconds_text(box.time);
    const std::string title = box.count == 1
                                  ? say("{}, {}", name, time)
                                  : say("{} and others, {} operations, {}", name, box.count, time);
    return fmt::format(
        "<rect class=\"{}\" x=\"{:.2f}\" y=\"1\" width=\"{:.2f}\" "
        "height=\"18\"><title>{}</title></rect>\n",
        box.colour, box.begin, std::max(box.end - box.begin, kThinnest), told(title, language));
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
                .name = operation.name,
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
                const std::string& figure, Language language) {
    return fmt::format(
        "<div class=\"bar\"><span>{}<br><b>{}</b></span><span><i class=\"{}\" "
        "style=\"width:{:.1f}%\"></i></span></div>\n",
        told(name, language), told(figure, language), kind, std::clamp(share, 0.0, 1.0) * kPercent);
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

std::string told(const std::string& sentence, Language language) {
    return escaped(spoken(sentence, language));
}

std::string steps_chart(const Profile& profile, std::size_t optimizer, Language language) {
    const auto bars = bars_of(profile, optimizer);
    if (bars.empty()) {
        return fmt::format("<p class=\"quiet\">{}</p>\n",
                           told(say("No step was recorded on the device."), language));
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
        const std::string title = say("step {}: busy {}, idle {}", step.number,
                                      nanoseconds_text(static_cast<double>(step.device_busy)),
                                      nanoseconds_text(static_cast<double>(step.gaps)));
        shapes += fmt::format(
            "<g><title>{}</title><rect class=\"gap\" x=\"{}\" y=\"{:.2f}\" width=\"0.85\" "
            "height=\"{:.2f}\"/>"
            "<rect class=\"busy\" x=\"{}\" y=\"{:.2f}\" width=\"0.85\" height=\"{:.2f}\"/>",
            told(title, language), i, kPercent - whole, whole, i, kPercent - busy, busy);
        if (span_of(step) > top) {
            shapes += fmt::format(
                "<rect class=\"cut\" x=\"{}\" y=\"0\" width=\"0.85\" height=\"3\"/>", i);
            cut = true;
        }
        shapes += "</g>\n";
    }
    return fmt::format(
        "<figure><div class=\"axis\"><span>{}</span></div>\n"
        "<svg class=\"chart\" role=\"img\" aria-label=\"{}\" "
        "viewBox=\"0 0 {} 100\" preserveAspectRatio=\"none\">\n{}</svg>\n"
        "<div class=\"axis\"><span>{}</span><span>{}</span></div>\n"
        "<ul class=\"legend\">\n{}{}{}</ul></figure>\n",
        nanoseconds_text(top),
        told(say("Time on the device of each of {} steps; the median is {}", bars.size(),
                 nanoseconds_text(median)),
             language),
        bars.size(), shapes, told(say("step {}", bars.front()->number), language),
        told(say("step {}", bars.back()->number), language),
        legend_item("busy", say("the device works on the step"), language),
        legend_item("gap", say("it waits between the step's operations"), language),
        cut ? legend_item("cut", say("longer than is drawn, up to {}", nanoseconds_text(longest)),
                          language)
            : "");
}

std::string timeline_chart(const Profile& profile, std::size_t step, Language language) {
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
            legend += legend_item(
                colour_at(i),
                say("{}, {}", profile.names[names[i].first], nanoseconds_text(names[i].second)),
                language);
        }
    }
    legend += legend_item("rest", say("all else on the GPU"), language);
    std::string lanes;
    for (const auto& [place, boxes] : lanes_of(profile, step, begin, length, colours)) {
        std::string shapes;
        for (const Box& box : boxes) {
            shapes += drawn(box, profile, language);
        }
        lanes += fmt::format(
            "<div class=\"axis\"><span>{}</span></div>\n"
            "<svg class=\"lane\" role=\"img\" aria-label=\"{}\" "
            "viewBox=\"0 0 {} 20\" preserveAspectRatio=\"none\">\n{}</svg>\n",
            told(say("GPU {}, stream {}", place.first, place.second), language),
            told(say("Operations of GPU {}, stream {}", place.first, place.second), language),
            kWidth, shapes);
    }
    return fmt::format(
        "<figure>\n{}<div class=\"axis\"><span>0</span><span>{}</span></div>\n"
        "<ul class=\"legend\">\n{}</ul></figure>\n",
        lanes, nanoseconds_text(length), legend);
}

std::string share_chart(const Optimizer& optimizer, Language language) {
    const double busy = optimizer.device.median;
    const double gaps = optimizer.gaps.median;
    const double whole = std::max(optimizer.period.median, busy + gaps);
    if (whole <= 0) {
        return {};
    }
    const double rest = whole - busy - gaps;
    const auto percent = [&](double time) { return time / whole * kPercent; };
    const auto part = [&](const char* colour, double time) {
        return fmt::format("<span class=\"{}\" style=\"width:{:.2f}%\"></span>", colour,
                           percent(time));
    };
    return fmt::format(
        "<figure><div class=\"stack\" aria-hidden=\"true\">{}{}{}</div>\n<ul "
        "class=\"legend\">\n{}{}{}</ul></figure>\n",
        part("busy", busy), part("gap", gaps), part("rest", rest),
        legend_item(
            "busy",
            say("the optimizer's operations: {} ({:.0f} %)", nanoseconds_text(busy), percent(busy)),
            language),
        legend_item("gap",
                    say("idle between them: {} ({:.0f} %)", nanoseconds_text(gaps), percent(gaps)),
                    language),
        legend_item("rest",
                    say("all else of the training step: {} ({:.0f} %)", nanoseconds_text(rest),
                        percent(rest)),
                    language));
}

std::string roofline_chart(const Profile& profile, const Optimizer& optimizer, Language language) {
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
    const auto row = [&](const std::string& name, const char* kind, double rate) {
        const std::string figure = copy > 0
                                       ? say("{:.0f} GB/s, {:.0f} %", rate, rate / copy * kPercent)
                                       : fmt::format("{:.0f} GB/s", rate);
        return rate <= 0 ? std::string{} : bar(name, kind, rate / top, figure, language);
    };
    return fmt::format(
        "<figure>\n{}{}{}{}<figcaption>{}{}</figcaption></figure>\n",
        row(say("a plain copy on this card"), "roof", copy),
        row(say("cudiag's own AdamW"), "other", limit),
        row(say("torch's fused, predicted"), "other", fused),
        row(say("this run"), "run", *optimizer.gb_per_s),
        told(say("A step of it does less than one operation for each byte that it moves, so memory "
                 "is the roof. It reads and writes at least {} bytes a step.",
                 grouped(optimizer.traffic.total())),
             language),
        copy > 0 ? ""
                 : fmt::format(" {} <code>cudiag bench adam</code>",
                               told(say("What this card can do is not known; this measures it:"),
                                    language)));
}

}  // namespace cudiag
