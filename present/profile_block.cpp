#include "present/profile_block.h"

#include <fmt/core.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "diagnose/say.h"
#include "present/painter.h"
#include "present/profile_text.h"
#include "present/spoken.h"

namespace cudiag {
namespace {

using Json = nlohmann::ordered_json;

constexpr double kMilli = 1e6;  // ns

double rounded(double value) {
    return std::round(value * 1000) / 1000;
}

std::string percent(double share) {
    return fmt::format("{:.0f} %", 100 * share);
}

class Block {
  public:
    explicit Block(const Style& style) : painter_{style} {}

    void head(const std::string& text) {
        out_ += fmt::format("  {}\n",
                            painter_.bold(wrapped(printable(spoken(text)), painter_.width(), 2)));
    }

    void line(const std::string& label, const std::string& text) {
        out_ += painter_.line(label, text);
    }

    std::string take() { return std::move(out_); }

  private:
    const Painter painter_;
    std::string out_;
};

std::string title_of(const Optimizer& optimizer) {
    std::string title;
    if (optimizer.tensors() > 0) {
        const auto elements = static_cast<double>(optimizer.elements());
        title += say(", {} parameters, ", optimizer.tensors());
        title += elements >= 1e8   ? say("{:.1f}e9 elements", elements / 1e9)
                 : elements >= 1e5 ? say("{:.1f}e6 elements", elements / 1e6)
                                   : say("{:.0f} elements", elements);
        std::string dtypes;
        for (const ParameterGroup& group : optimizer.parameters) {
            const std::string text = say("{} on {}", group.dtype, group.device);
            if (dtypes.find(text) == std::string::npos) {
                dtypes += (dtypes.empty() ? "" : ", ") + text;
            }
        }
        title += say(" ({})", dtypes);
    }
    return say("{}{}", called(optimizer), title);
}

void add_step(const Optimizer& optimizer, Block& block) {
    const bool on_device = optimizer.span.count > 0 && optimizer.kernels_a_step > 0;
    const Times& times = on_device ? optimizer.span : optimizer.host;
    std::string text =
        say("{} (p95 {})", nanoseconds_text(times.median), nanoseconds_text(times.p95));
    if (optimizer.share) {
        text += say(", {} of a training step of {}", percent(*optimizer.share),
                    nanoseconds_text(optimizer.period.median));
    }
    if (optimizer.share && optimizer.busy_share) {
        text += say(", in which the GPU is busy for {}", percent(*optimizer.busy_share));
    }
    text += say("; median of {} of {} steps", optimizer.steady_steps, optimizer.steps);
    block.line("a step", text);
    if (on_device) {
        block.line(
            "host",
            say("{} in step(){}", nanoseconds_text(optimizer.host.median),
                optimizer.debugger.empty() ? "" : say(", with {} active", optimizer.debugger)));
    }
}

void add_device(const Optimizer& optimizer, const Profile& profile, Block& block) {
    if (optimizer.span.count == 0) {
        return;
    }
    std::string text = say("busy {}, waiting between kernels {}, {:.0f} kernels",
                           nanoseconds_text(optimizer.device.median),
                           nanoseconds_text(optimizer.gaps.median), optimizer.kernels_a_step);
    if (optimizer.copies_a_step > 0) {
        text += say(", {:.0f} copies ({})", optimizer.copies_a_step,
                    nanoseconds_text(optimizer.copy_time_a_step));
    }
    block.line("GPU", text);
    if (optimizer.gb_per_s) {
        text = say("{:.1f} GB must be read and written: {:.0f} GB/s",
                   static_cast<double>(optimizer.traffic.total()) / 1e9, *optimizer.gb_per_s);
        for (const ProfiledDevice& device : profile.devices) {
            if (device.copy_gb_per_s && *device.copy_gb_per_s > 0) {
                text += say(", {} of a copy's {:.0f} GB/s on this card",
                            percent(*optimizer.gb_per_s / *device.copy_gb_per_s),
                            *device.copy_gb_per_s);
            }
        }
        block.line("memory", text);
    }
    if (optimizer.fused_ms && optimizer.limit_ms) {
        block.line("this card",
                   say("fused AdamW takes {:.1f} ms here (predicted, ± {}), "
                       "the fastest that we know of {:.1f} ms",
                       *optimizer.fused_ms, percent(*optimizer.fused_error), *optimizer.limit_ms));
    }
}

void add_kernels(const Optimizer& optimizer, const Profile& profile, Block& block) {
    constexpr std::size_t kMost = 4;
    for (std::size_t i = 0; i < std::min(kMost, optimizer.by_name.size()); ++i) {
        const KernelTime& kernel = optimizer.by_name[i];
        block.line(i == 0 ? "kernels" : "",
                   say("{:>8} in {:.0f} x {} {}", nanoseconds_text(kernel.time_a_step),
                       kernel.launches_a_step, nanoseconds_text(kernel.mean),
                       short_kernel(profile.names[kernel.name])));
    }
    if (optimizer.by_name.size() > kMost) {
        block.line("", say("… and {} more", optimizer.by_name.size() - kMost));
    }
}

std::string records_text(const Completeness& complete) {
    if (!complete.device_timeline) {
        return say("no device timeline: {}", complete.why_not);
    }
    std::string text =
        say("{} launches, {} recorded; CUPTI lost {}", complete.launches, complete.records,
            complete.dropped ? fmt::format("{}", *complete.dropped) : say("an unknown number"));
    if (complete.not_kept > 0) {
        text += say(", {} found no room in the file", complete.not_kept);
    }
    if (complete.out_of_range > 0) {
        text += say(", {} have times of another clock", complete.out_of_range);
    }
    if (complete.shared_with_client) {
        text += say("; another profiler recorded at the same time");
    }
    if (!complete.clients.empty()) {
        text += say("; clients of CUPTI: {}", fmt::format("{}", fmt::join(complete.clients, ", ")));
    }
    return text;
}

std::string cost_text(const OwnCost& cost) {
    if (const auto relative = cost.relative()) {
        return say(
            "{:+.1f} % of a training step: {} while recording, {} afterwards "
            "({} and {} steps)",
            100 * *relative, nanoseconds_text(*cost.period_in_window),
            nanoseconds_text(*cost.period_after), cost.steps_in_window, cost.steps_after);
    }
    return say(
        "not measured: that takes 10 recorded steps and 20 behind them (there were {} and {}); "
        "{} in CUPTI's buffers",
        cost.steps_in_window, cost.steps_after,
        nanoseconds_text(static_cast<double>(cost.in_buffers)));
}

Json times_json(const Times& times) {
    return {{"median", rounded(times.median / kMilli)}, {"p95", rounded(times.p95 / kMilli)}};
}

template <class T>
Json or_null(const std::optional<T>& value) {
    return value ? Json(*value) : Json();
}

Json parameters_json(const Optimizer& optimizer) {
    auto list = Json::array();
    for (const ParameterGroup& group : optimizer.parameters) {
        list.push_back({{"dtype", group.dtype},
                        {"device", group.device},
                        {"tensors", group.tensors},
                        {"elements", group.elements}});
    }
    return list;
}

Json kernels_json(const Optimizer& optimizer, const Profile& profile) {
    auto list = Json::array();
    for (const KernelTime& kernel : optimizer.by_name) {
        list.push_back({{"name", profile.names[kernel.name]},
                        {"launches_a_step", rounded(kernel.launches_a_step)},
                        {"ms_a_step", rounded(kernel.time_a_step / kMilli)},
                        {"mean_us", rounded(kernel.mean / 1e3)}});
    }
    return list;
}

Json optimizer_json(const Optimizer& optimizer, const Profile& profile) {
    Json json = {{"name", optimizer.name},
                 {"implementation", name_of(optimizer.implementation)},
                 {"fused", optimizer.fused},
                 {"foreach", optimizer.foreach},
                 {"capturable", optimizer.capturable},
                 {"parameters", parameters_json(optimizer)},
                 {"tensor_types", optimizer.tensor_types},
                 {"debugger", optimizer.debugger},
                 {"steps", optimizer.steps},
                 {"steps_measured", optimizer.steady_steps},
                 {"host_ms", times_json(optimizer.host)}};
    if (optimizer.span.count > 0) {
        json["device_ms"] = times_json(optimizer.span);
        json["busy_ms"] = times_json(optimizer.device);
        json["gaps_ms"] = times_json(optimizer.gaps);
        json["busy_sum_ms"] = rounded(optimizer.device.sum / kMilli);
        json["kernels_a_step"] = rounded(optimizer.kernels_a_step);
        json["copies_a_step"] = rounded(optimizer.copies_a_step);
    }
    if (optimizer.period.count > 0) {
        json["training_step_ms"] = times_json(optimizer.period);
    }
    json["share"] = or_null(optimizer.share);
    json["busy_share"] = or_null(optimizer.busy_share);
    json["moved_bytes"] = optimizer.traffic.known ? Json(optimizer.traffic.total()) : Json();
    json["gb_per_s"] = or_null(optimizer.gb_per_s);
    json["fused_ms_here"] = or_null(optimizer.fused_ms);
    json["fused_error"] = or_null(optimizer.fused_error);
    json["limit_ms_here"] = or_null(optimizer.limit_ms);
    json["kernels"] = kernels_json(optimizer, profile);
    return json;
}

Json completeness_json(const Completeness& complete) {
    return {{"device_timeline", complete.device_timeline},
            {"why_not", complete.why_not},
            {"cupti", complete.cupti},
            {"cupti_version", complete.cupti_version},
            {"launches", complete.launches},
            {"recorded", complete.records},
            {"lost_by_cupti", complete.dropped ? Json(*complete.dropped) : Json("unknown")},
            {"without_room", complete.not_kept},
            {"of_another_clock", complete.out_of_range},
            {"shared", complete.shared_with_client},
            {"clients", complete.clients},
            {"matched_by_launch", complete.matched_by_launch}};
}

Json steps_json(const Profile& profile) {
    auto list = Json::array();
    for (const OptimizerStep& step : profile.steps) {
        Json json = {{"optimizer", step.optimizer},
                     {"number", step.number},
                     {"begin_ns", step.begin},
                     {"end_ns", step.end},
                     {"launches", or_null(step.launches)}};
        if (step.profiled) {
            json["kernels"] = step.kernels;
            json["device_begin_ns"] = step.device_begin;
            json["device_end_ns"] = step.device_end;
            json["busy_ns"] = step.device_busy;
        }
        list.push_back(std::move(json));
    }
    return list;
}

}  // namespace

std::string render_profile(const Profile& profile, const Style& style,
                           const std::string& run_directory) {
    Block block{style};
    bool any = false;
    for (const Optimizer& optimizer : profile.optimizers) {
        if (optimizer.steps == 0) {
            continue;
        }
        any = true;
        block.head(title_of(optimizer));
        add_step(optimizer, block);
        add_device(optimizer, profile, block);
        add_kernels(optimizer, profile, block);
    }
    if (!any) {
        block.head(say("no step of an optimizer was seen"));
    }
    block.line("recorded", records_text(profile.completeness));
    block.line("own cost", cost_text(profile.cost));
    if (!run_directory.empty()) {
        block.line("more", "cudiag report " + run_directory);
    }
    const Painter painter{style};
    return fmt::format("{} {} {}\n{}", painter.bold("cudiag:"),
                       painter.bold(spoken_label("profile")), profile.pid, block.take());
}

nlohmann::ordered_json profile_json(const Profile& profile) {
    auto optimizers = Json::array();
    for (const Optimizer& optimizer : profile.optimizers) {
        optimizers.push_back(optimizer_json(optimizer, profile));
    }
    auto devices = Json::array();
    for (const ProfiledDevice& device : profile.devices) {
        devices.push_back({{"ordinal", device.ordinal},
                           {"name", device.name},
                           {"uuid", device.uuid},
                           {"driver", device.driver},
                           {"copy_gb_per_s", or_null(device.copy_gb_per_s)},
                           {"measured", device.measured}});
    }
    const OwnCost& cost = profile.cost;
    const auto in_ms = [](const std::optional<double>& time) {
        return time ? Json(rounded(*time / kMilli)) : Json();
    };
    return {{"pid", profile.pid},
            {"mode", profile.mode},
            {"optimizers", std::move(optimizers)},
            {"devices", std::move(devices)},
            {"records", completeness_json(profile.completeness)},
            {"own_cost",
             {{"buffers_ms", rounded(static_cast<double>(cost.in_buffers) / kMilli)},
              {"relative", or_null(cost.relative())},
              {"training_step_ms_recorded", in_ms(cost.period_in_window)},
              {"training_step_ms_after", in_ms(cost.period_after)}}},
            {"operations", profile.operations.size()},
            {"steps", steps_json(profile)}};
}

}  // namespace cudiag
