#include "diagnose/optimizer/words.h"
#include "diagnose/say.h"

namespace cudiag {
namespace {

using Json = nlohmann::ordered_json;

Json records_json(const Completeness& complete) {
    return {{"launches", complete.launches},
            {"recorded", complete.records},
            {"lost_by_cupti", complete.dropped ? Json(*complete.dropped) : Json("unknown")},
            {"without_room", complete.not_kept},
            {"of_another_clock", complete.out_of_range},
            {"clients", complete.clients}};
}

std::string title_of(const Optimizer& optimizer) {
    std::string title;
    if (optimizer.tensors() > 0) {
        title += say(", {} parameters, {} elements", optimizer.tensors(),
                     count_text(optimizer.elements()));
    }
    const bool on_device = optimizer.span.count > 0 && optimizer.kernels_a_step > 0;
    title +=
        say(": {} a step", time_text(on_device ? optimizer.span.median : optimizer.host.median));
    if (optimizer.share) {
        title += say(", {:.0f} % of the step", 100 * *optimizer.share);
    }
    if (optimizer.kernels_a_step > 0) {
        title += say(", {:.0f} kernels", optimizer.kernels_a_step);
    }
    if (optimizer.limit_ms) {
        title += say("; this card's limit is {:.1f} ms", *optimizer.limit_ms);
    }
    return say("{}{}", called(optimizer), title);
}

void add_device(const Optimizer& optimizer, const Profile& profile, Json& evidence) {
    if (optimizer.span.count == 0) {
        return;
    }
    evidence["device_ms"] = {{"median", milliseconds(optimizer.span.median)},
                             {"p95", milliseconds(optimizer.span.p95)},
                             {"busy", milliseconds(optimizer.device.median)},
                             {"gaps", milliseconds(optimizer.gaps.median)}};
    evidence["kernels_a_step"] = optimizer.kernels_a_step;
    if (optimizer.copies_a_step > 0) {
        evidence["copies_a_step"] = optimizer.copies_a_step;
        evidence["copies_ms"] = milliseconds(optimizer.copy_time_a_step);
    }
    if (optimizer.traffic.known) {
        evidence["moved_bytes"] = optimizer.traffic.total();
    }
    if (optimizer.gb_per_s) {
        evidence["gb_per_s"] = static_cast<std::uint64_t>(*optimizer.gb_per_s);
        for (const ProfiledDevice& device : profile.devices) {
            if (device.copy_gb_per_s && *device.copy_gb_per_s > 0) {
                evidence["of_copy_percent"] =
                    static_cast<std::uint64_t>(100 * *optimizer.gb_per_s / *device.copy_gb_per_s);
            }
        }
    }
    if (optimizer.fused_ms) {
        evidence["fused_ms_here"] = {{"predicted", *optimizer.fused_ms},
                                     {"error_percent", 100 * *optimizer.fused_error}};
    }
}

Json cost_json(const OwnCost& cost) {
    Json json = {{"buffers_ms", milliseconds(static_cast<double>(cost.in_buffers))}};
    if (const auto relative = cost.relative()) {
        json["percent_of_a_step"] = static_cast<double>(static_cast<long>(1000 * *relative)) / 10;
    } else {
        json["percent_of_a_step"] = say("not measured: too few steps, or none, behind the window");
    }
    return json;
}

std::string limits_of(const Profile& profile) {
    const Completeness& complete = profile.completeness;
    std::string limits;
    const auto add = [&](const std::string& text) {
        limits += (limits.empty() ? "" : "; ") + text;
    };
    if (!complete.device_timeline) {
        add(say("there is no device timeline: {}", complete.why_not));
    } else if (!complete.complete()) {
        add(say("not all that the GPU did was recorded"));
    }
    if (complete.device_timeline && !complete.matched_by_launch) {
        add(say(
            "which kernels belong to a step is told by their names and times, since launches and "
            "records are not the same number"));
    }
    return limits;
}

Finding without_steps(const ProfileCase& c) {
    Finding finding = finding_of(c, "optimizer-profile", Severity::note);
    finding.title = say("no step of an optimizer was seen");
    for (const RecordedLack& lack : c.recorded.lacks) {
        if (lack.call == "steps") {
            finding.title += say(": {}", say_known(lack.text));
        }
    }
    finding.evidence["records"] = records_json(c.profile.completeness);
    finding.limits = limits_of(c.profile);
    return finding;
}

}  // namespace

std::vector<Finding> optimizer_profile(const ProfileCase& c) {
    std::vector<Finding> findings;
    for (const Optimizer& optimizer : c.profile.optimizers) {
        if (optimizer.steps == 0) {
            continue;
        }
        Finding finding = finding_of(c, "optimizer-profile", Severity::note);
        finding.title = title_of(optimizer);
        Json& evidence = finding.evidence;
        evidence["optimizer"] = optimizer.name;
        evidence["implementation"] = name_of(optimizer.implementation);
        evidence["steps"] = optimizer.steps;
        evidence["steps_measured"] = optimizer.steady_steps;
        evidence["host_ms"] = {{"median", milliseconds(optimizer.host.median)},
                               {"p95", milliseconds(optimizer.host.p95)}};
        if (optimizer.period.count > 0) {
            evidence["training_step_ms"] = milliseconds(optimizer.period.median);
        }
        if (optimizer.busy_share) {
            evidence["busy_percent"] = static_cast<std::uint64_t>(100 * *optimizer.busy_share);
        }
        add_device(optimizer, c.profile, evidence);
        if (c.profile.completeness.device_timeline) {
            evidence["records"] = records_json(c.profile.completeness);
        }
        evidence["own_cost"] = cost_json(c.profile.cost);
        const std::string burden = host_burden(optimizer);
        if (!burden.empty()) {
            evidence["host_burden"] = burden;
        }
        const bool may_be_fused = optimizer.implementation == Implementation::foreach ||
                                  optimizer.implementation == Implementation::for_loop;
        if (may_be_fused && !optimizer.fused_ms && burden.empty() && device_decides(optimizer)) {
            finding.fixes.push_back(
                {.text = say("measure this card once: then it is told what fused=True would save"),
                 .command = "cudiag bench adam"});
        }
        finding.limits = limits_of(c.profile);
        findings.push_back(std::move(finding));
    }
    if (findings.empty()) {
        findings.push_back(without_steps(c));
    }
    return findings;
}

}  // namespace cudiag
