#include "present/profile_html.h"

#include <fmt/core.h>
#include <fmt/format.h>

#include <algorithm>

#include "diagnose/embedded.h"
#include "present/grouped.h"
#include "present/profile_charts.h"
#include "present/profile_text.h"

namespace cudiag {
namespace {

constexpr double kPercent = 100;
constexpr double kMilli = 1e6;             // ns
constexpr std::size_t kMostSteps = 1000;   // in the table of steps
constexpr std::size_t kMostKernels = 100;  // in the table of kernels

std::string card(const std::string& figure, const std::string& what) {
    return fmt::format("<li><b>{}</b>{}</li>\n", escaped(figure), escaped(what));
}

std::string parameters_text(const Optimizer& optimizer) {
    std::string text;
    for (const ParameterGroup& group : optimizer.parameters) {
        text +=
            fmt::format("{}{} elements of {} in {} tensors on {}", text.empty() ? "" : "; ",
                        grouped(group.elements), group.dtype, grouped(group.tensors), group.device);
    }
    return text;
}

std::string figures(const Optimizer& optimizer) {
    std::string items = card(nanoseconds_text(optimizer.span.median),
                             fmt::format("a step on the device; 95 of 100 within {}",
                                         nanoseconds_text(optimizer.span.p95)));
    if (optimizer.share) {
        items += card(fmt::format("{:.0f} %", *optimizer.share * kPercent), "of a training step");
    }
    items += card(fmt::format("{:.0f}", optimizer.kernels_a_step), "kernels a step");
    items += card(grouped(optimizer.steps),
                  fmt::format("steps; these figures are of {}", grouped(optimizer.steady_steps)));
    if (optimizer.gb_per_s) {
        items +=
            card(fmt::format("{:.0f} GB/s", *optimizer.gb_per_s), "read and written in a step");
    }
    if (optimizer.fused_ms) {
        items += card(nanoseconds_text(*optimizer.fused_ms * kMilli),
                      optimizer.fused_error
                          ? fmt::format("torch's fused step here, predicted within {:.0f} %",
                                        *optimizer.fused_error * kPercent)
                          : "torch's fused step here, predicted");
    }
    return "<ul class=\"cards\">\n" + items + "</ul>\n";
}

std::string kernels_table(const Profile& profile, const Optimizer& optimizer) {
    std::string rows;
    for (std::size_t i = 0; i < std::min(optimizer.by_name.size(), kMostKernels); ++i) {
        const KernelTime& kernel = optimizer.by_name[i];
        rows += fmt::format("<tr><td>{}</td><td>{:.1f}</td><td>{}</td><td>{}</td></tr>\n",
                            escaped(profile.names[kernel.name]), kernel.launches_a_step,
                            nanoseconds_text(kernel.time_a_step), nanoseconds_text(kernel.mean));
    }
    return "<div class=\"table\"><table><thead><tr><th scope=\"col\">kernel or copy</th><th "
           "scope=\"col\">a step</th>"
           "<th scope=\"col\">time a step</th><th scope=\"col\">of "
           "one</th></tr></thead>\n<tbody>\n" +
           rows + "</tbody></table></div>\n";
}

std::string steps_table(const Profile& profile, std::size_t optimizer) {
    std::string rows;
    std::size_t shown = 0;
    std::size_t all = 0;
    for (const OptimizerStep& step : profile.steps) {
        if (step.optimizer != optimizer || ++all > kMostSteps) {
            continue;
        }
        ++shown;
        const auto device = [&](std::uint64_t time) {
            return step.profiled ? nanoseconds_text(static_cast<double>(time)) : std::string{"-"};
        };
        rows += fmt::format(
            "<tr><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td>{}</td></tr>\n", step.number,
            nanoseconds_text(static_cast<double>(step.end - step.begin)), device(step.device_busy),
            device(step.gaps), step.profiled ? fmt::format("{}", step.operations) : "-");
    }
    return fmt::format(
        "<details><summary>The figures of {} steps{}</summary>\n<div "
        "class=\"table\"><table><thead><tr><th scope=\"col\">step</th>"
        "<th scope=\"col\">host</th><th scope=\"col\">device busy</th><th scope=\"col\">idle "
        "between</th>"
        "<th "
        "scope=\"col\">operations</th></tr></thead>\n<tbody>\n{}</tbody></table></div></details>\n",
        grouped(shown), shown < all ? fmt::format(" of {}", grouped(all)) : "", rows);
}

std::string optimizer_section(const Profile& profile, std::size_t index) {
    const Optimizer& optimizer = profile.optimizers[index];
    std::string text =
        fmt::format("<h2>{}</h2>\n<p class=\"quiet\">{}</p>\n", escaped(name_of(optimizer)),
                    escaped(parameters_text(optimizer)));
    if (optimizer.steady_steps == 0) {
        return text + "<p>No steady step of it was recorded on the device.</p>\n" +
               steps_table(profile, index);
    }
    text += figures(optimizer);
    text += "<h3>Of a training step</h3>\n" + share_chart(optimizer);
    if (const std::string roofline = roofline_chart(profile, optimizer); !roofline.empty()) {
        text += "<h3>Against what memory allows</h3>\n" + roofline;
    }
    text += "<h3>Each step</h3>\n" + steps_chart(profile, index) + steps_table(profile, index);
    if (const auto step = typical_step(profile, index)) {
        text += fmt::format("<h3>Step {} in time</h3>\n", profile.steps[*step].number) +
                timeline_chart(profile, *step);
    }
    return text + "<h3>What ran</h3>\n" + kernels_table(profile, optimizer);
}

// Is it all, and what did it cost?
std::string completeness(const Profile& profile) {
    const Completeness& is = profile.completeness;
    std::string text = "<h2>How complete this is</h2>\n";
    if (!is.device_timeline) {
        return text + fmt::format("<p>The device's timeline was not recorded: {}</p>\n",
                                  escaped(is.why_not));
    }
    text += fmt::format(
        "<p>{} of {} launches have their record; CUPTI dropped {}, and {} did not fit into the "
        "file.{}</p>\n",
        grouped(is.records), grouped(is.launches),
        is.dropped ? grouped(*is.dropped) : "an unknown number", grouped(is.not_kept),
        is.complete() ? " Nothing is missing." : "");
    if (is.shared_with_client) {
        text += "<p>Another profiler recorded at the same time.</p>\n";
    }
    if (const auto cost = profile.cost.relative()) {
        text += fmt::format("<p>Training steps took {:+.1f} % while this was recorded.</p>\n",
                            *cost * kPercent);
    }
    text += "<p class=\"quiet\">";
    for (const ProfiledDevice& device : profile.devices) {
        text += escaped(
            fmt::format("GPU {}: {}, driver {}. ", device.ordinal, device.name, device.driver));
    }
    return text + fmt::format("CUPTI: {}.</p>\n", escaped(is.cupti));
}

}  // namespace

std::string profile_html(const std::vector<Profile>& profiles, const std::string& run) {
    std::string body;
    for (const Profile& profile : profiles) {
        if (profiles.size() > 1) {
            body += fmt::format("<h1>Process {}</h1>\n", profile.pid);
        }
        for (std::size_t i = 0; i < profile.optimizers.size(); ++i) {
            body += optimizer_section(profile, i);
        }
        body += completeness(profile);
    }
    return fmt::format(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
        "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
        "<title>Optimizer profile of {0}</title>\n<style>\n{1}</style>\n</head>\n<body>\n<main>\n"
        "<h1>Where the optimizer's time goes</h1>\n<p class=\"quiet\">Run {0}, recorded by "
        "cudiag.</p>\n{2}</main>\n</body>\n</html>\n",
        escaped(run), embedded_file("profile.css"), body);
}

}  // namespace cudiag
