#include "present/profile_html.h"

#include <fmt/core.h>
#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "diagnose/embedded.h"
#include "diagnose/say.h"
#include "present/grouped.h"
#include "present/profile_charts.h"
#include "present/profile_text.h"
#include "present/spoken.h"

namespace cudiag {
namespace {

constexpr double kPercent = 100;
constexpr double kMilli = 1e6;             // ns
constexpr std::size_t kMostSteps = 1000;   // in the table of steps
constexpr std::size_t kMostKernels = 100;  // in the table of kernels

std::string card(const std::string& figure, const std::string& what, Language language) {
    return fmt::format("<li><b>{}</b>{}</li>\n", figure, told(what, language));
}

std::string heading(int level, const std::string& text, Language language) {
    return fmt::format("<h{0}>{1}</h{0}>\n", level, told(text, language));
}

std::string paragraph(const std::string& text, Language language) {
    return fmt::format("<p>{}</p>\n", told(text, language));
}

std::string quiet_paragraph(const std::string& text, Language language) {
    return fmt::format("<p class=\"quiet\">{}</p>\n", told(text, language));
}

std::string table(const std::vector<std::string>& columns, const std::string& rows) {
    std::string head;
    for (const std::string& column : columns) {
        head += fmt::format("<th scope=\"col\">{}</th>", escaped(column));
    }
    return fmt::format(
        "<div class=\"table\"><table><thead><tr>{}</tr></thead>\n"
        "<tbody>\n{}</tbody></table></div>\n",
        head, rows);
}

std::string parameters_text(const Optimizer& optimizer) {
    std::vector<std::string> groups;
    groups.reserve(optimizer.parameters.size());
    for (const ParameterGroup& group : optimizer.parameters) {
        groups.push_back(say("{} elements of {} in {} tensors on {}", grouped(group.elements),
                             group.dtype, grouped(group.tensors), group.device));
    }
    return say_list(groups, "; ");
}

std::string figures(const Optimizer& optimizer, Language language) {
    std::string items =
        card(nanoseconds_text(optimizer.span.median),
             say("a step on the device; 95 of 100 within {}", nanoseconds_text(optimizer.span.p95)),
             language);
    if (optimizer.share) {
        items += card(fmt::format("{:.0f} %", *optimizer.share * kPercent),
                      say("of a training step"), language);
    }
    if (optimizer.busy_share) {
        items += card(fmt::format("{:.0f} %", *optimizer.busy_share * kPercent),
                      say("of a training step the GPU is busy"), language);
    }
    items += card(fmt::format("{:.0f}", optimizer.kernels_a_step), say("kernels a step"), language);
    items += card(grouped(optimizer.steps),
                  say("steps; these figures are of {}", grouped(optimizer.steady_steps)), language);
    if (optimizer.gb_per_s) {
        items += card(fmt::format("{:.0f} GB/s", *optimizer.gb_per_s),
                      say("read and written in a step"), language);
    }
    if (optimizer.fused_ms) {
        items +=
            card(nanoseconds_text(*optimizer.fused_ms * kMilli),
                 optimizer.fused_error ? say("torch's fused step here, predicted within {:.0f} %",
                                             *optimizer.fused_error * kPercent)
                                       : say("torch's fused step here, predicted"),
                 language);
    }
    return "<ul class=\"cards\">\n" + items + "</ul>\n";
}

std::string kernels_table(const Profile& profile, const Optimizer& optimizer, Language language) {
    std::string rows;
    for (std::size_t i = 0; i < std::min(optimizer.by_name.size(), kMostKernels); ++i) {
        const KernelTime& kernel = optimizer.by_name[i];
        rows += fmt::format(
            "<tr><td class=\"name\">{}</td><td>{:.1f}</td><td>{}</td><td>{}</td></tr>\n",
            told(profile.names[kernel.name], language), kernel.launches_a_step,
            nanoseconds_text(kernel.time_a_step), nanoseconds_text(kernel.mean));
    }
    return table({spoken_label("kernel or copy", language), spoken_label("count a step", language),
                  spoken_label("time a step", language), spoken_label("time of one", language)},
                 rows);
}

std::string steps_table(const Profile& profile, std::size_t optimizer, Language language) {
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
        "<details><summary>{}</summary>\n{}</details>\n",
        told(shown < all ? say("The figures of {} steps of {}", grouped(shown), grouped(all))
                         : say("The figures of {} steps", grouped(shown)),
             language),
        table({spoken_label("step", language), spoken_label("host", language),
               spoken_label("device busy", language), spoken_label("idle between", language),
               spoken_label("operations", language)},
              rows));
}

std::string optimizer_section(const Profile& profile, std::size_t index, Language language) {
    const Optimizer& optimizer = profile.optimizers[index];
    std::string text = heading(2, called(optimizer), language) +
                       quiet_paragraph(parameters_text(optimizer), language);
    if (optimizer.steady_steps == 0) {
        return text + paragraph(say("No steady step of it was recorded on the device."), language) +
               steps_table(profile, index, language);
    }
    text += figures(optimizer, language);
    text += heading(3, say("Of a training step"), language) + share_chart(optimizer, language);
    if (const std::string roofline = roofline_chart(profile, optimizer, language);
        !roofline.empty()) {
        text += heading(3, say("Against what memory allows"), language) + roofline;
    }
    text += heading(3, say("Each step"), language) + steps_chart(profile, index, language) +
            steps_table(profile, index, language);
    if (const auto step = typical_step(profile, index)) {
        text += heading(3, say("Step {} in time", profile.steps[*step].number), language) +
                timeline_chart(profile, *step, language);
    }
    return text + heading(3, say("What ran"), language) +
           kernels_table(profile, optimizer, language);
}

// Is it all, and what did it cost?
std::string completeness(const Profile& profile, Language language) {
    const Completeness& is = profile.completeness;
    std::string text = heading(2, say("How complete this is"), language);
    if (!is.device_timeline) {
        return text +
               paragraph(say("The device's timeline was not recorded: {}", is.why_not), language);
    }
    text += paragraph(
        say("{} of {} launches have their record; CUPTI dropped {}, and {} did not fit into the "
            "file.",
            grouped(is.records), grouped(is.launches),
            is.dropped ? grouped(*is.dropped) : say("an unknown number"), grouped(is.not_kept)),
        language);
    if (is.complete()) {
        text += paragraph(say("Nothing is missing."), language);
    }
    if (is.out_of_range > 0) {
        text += paragraph(say("{} records have times of another clock, and are left out.",
                              grouped(is.out_of_range)),
                          language);
    }
    if (is.shared_with_client) {
        text += paragraph(say("Another profiler recorded at the same time."), language);
    }
    if (!is.clients.empty()) {
        text += paragraph(
            say("Clients of CUPTI: {}.", fmt::format("{}", fmt::join(is.clients, ", "))), language);
    }
    if (const auto cost = profile.cost.relative()) {
        text += paragraph(
            say("Training steps took {:+.1f} % while this was recorded.", *cost * kPercent),
            language);
    }
    for (const ProfiledDevice& device : profile.devices) {
        text += quiet_paragraph(
            say("GPU {}: {}, driver {}", device.ordinal, device.name, device.driver), language);
    }
    return text + quiet_paragraph(fmt::format("CUPTI: {}", is.cupti), language);
}

}  // namespace

std::string profile_html(const std::vector<Profile>& profiles, const std::string& run,
                         Language language) {
    std::string body;
    for (const Profile& profile : profiles) {
        if (profiles.size() > 1) {
            body += heading(1, say("Process {}", profile.pid), language);
        }
        for (std::size_t i = 0; i < profile.optimizers.size(); ++i) {
            body += optimizer_section(profile, i, language);
        }
        body += completeness(profile, language);
    }
    return fmt::format(
        "<!DOCTYPE html>\n<html lang=\"{}\">\n<head>\n<meta charset=\"utf-8\">\n"
        "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
        "<title>{}</title>\n<style>\n{}</style>\n</head>\n<body>\n<main>\n"
        "{}{}{}</main>\n</body>\n</html>\n",
        tag_of(language), told(say("Optimizer profile of {}", run), language),
        embedded_file("profile.css"), heading(1, say("Where the optimizer's time goes"), language),
        quiet_paragraph(say("Run {}, recorded by cudiag.", run), language), body);
}

}  // namespace cudiag
