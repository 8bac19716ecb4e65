#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <set>

#include "diagnose/cuda/running_rules.h"
#include "diagnose/cuda/suspects.h"
#include "diagnose/knowledge/cuda.h"
#include "diagnose/knowledge/gpu_faults.h"
#include "diagnose/loader/surroundings.h"

namespace cudiag {
namespace {

constexpr std::size_t kMostTold = 16;

// Kernels by how often they were pending, in the order of the suspects.
nlohmann::ordered_json kernels_of(const Suspects& suspects) {
    std::map<std::string, std::uint64_t> counts;
    std::vector<std::string> order;
    for (const CudaLaunch* launch : suspects.launches) {
        const std::string name = launch_name(*launch);
        if (++counts[name] == 1) {
            order.push_back(name);
        }
    }
    auto kernels = nlohmann::ordered_json::array();
    for (const std::string& name : order) {
        if (kernels.size() == kMostTold) {
            break;
        }
        kernels.push_back(counts[name] == 1 ? name : fmt::format("{} ({}x)", name, counts[name]));
    }
    return kernels;
}

std::string title_of(const RunningCase& c, const Suspects& suspects, const GpuFault* fault) {
    const CudaError* known = cuda_error(c.told.code);
    const std::string what = fault != nullptr   ? fault->title
                             : known != nullptr ? known->text
                                                : fmt::format("error {}", c.told.code);
    if (suspects.pinned == Pinned::unseen) {
        return what + "; which kernel it was is not known";
    }
    const CudaLaunch& first = *suspects.launches.front();
    if (suspects.launches.size() == 1) {
        return fmt::format("{}: {}", what, launch_name(first));
    }
    if (suspects.pinned == Pinned::marked) {
        return fmt::format("{}: {}, or what {} other {} ran at that time", what, launch_name(first),
                           suspects.launches.size() - 1,
                           suspects.launches.size() == 2 ? "stream" : "streams");
    }
    return fmt::format("{}, in one of {} launches that were not known to be finished", what,
                       suspects.pending);
}

const char* how_pinned(Pinned pinned) {
    switch (pinned) {
        case Pinned::waited:
            return "CUDIAG_SYNC=1 waited for this launch, and the wait gave the error";
        case Pinned::marked:
            return "CUDIAG_TRACK=1: of each stream the first launch that the GPU had not finished";
        case Pinned::only_one:
            return "it was the only launch that was not known to be finished";
        case Pinned::no:
            return "not pinned: any launch since the last wait may be the one";
        case Pinned::unseen:
            return "no launch was seen that was not finished";
    }
    return "";
}

// The command line of the process in the place of {argv}.
std::string with_argv(std::string command, const Process& process) {
    constexpr std::string_view kPlace = "{argv}";
    const auto at = command.find(kPlace);
    if (at == std::string::npos) {
        return command;
    }
    std::string line;
    for (const std::string& argument : process.argv) {
        line += (line.empty() ? "" : " ") + shell_quoted(argument);
    }
    return command.replace(at, kPlace.size(), line);
}

// What is known of a kernel by its name: torch's own checks of indices, above all.
void add_hints(const Suspects& suspects, int code, Finding& finding) {
    std::set<std::string> told;
    for (const CudaLaunch* launch : suspects.launches) {
        const KernelHint* hint = kernel_hint(kernel_name(launch->kernel), code);
        if (hint != nullptr && told.insert(hint->text).second) {
            finding.fixes.push_back({hint->text, hint->command, false});
        }
    }
}

}  // namespace

std::optional<Finding> cuda_async_error(const RunningCase& c) {
    if (!c.sticky) {
        return std::nullopt;
    }
    const Suspects suspects = suspects_of(c);
    const GpuFault* fault = gpu_fault(c.told.code);
    Finding finding = begin_finding(c, "cuda-async-error", title_of(c, suspects, fault));
    const bool pinned = suspects.launches.size() == 1 && suspects.pinned != Pinned::no;
    finding.evidence["pinned_by"] = how_pinned(suspects.pinned);
    auto launches = nlohmann::ordered_json::array();
    for (const CudaLaunch* launch : suspects.launches) {
        if (launches.size() == kMostTold) {
            break;
        }
        launches.push_back(launch_json(*launch, c.failed));
    }
    finding.evidence["suspects"] = std::move(launches);
    if (suspects.launches.size() > 1) {
        finding.evidence["kernels"] = kernels_of(suspects);
    }
    finding.evidence["pending"] = suspects.pending;
    finding.evidence["streams"] = suspects.streams;
    if (!c.process.tracking.empty()) {
        finding.evidence["tracking"] = "off, though asked for: " + c.process.tracking;
    }
    if (pinned && !suspects.launches.front()->python.empty()) {
        finding.python = suspects.launches.front()->python;
    }
    if (pinned || suspects.pinned == Pinned::marked) {
        add_hints(suspects, c.told.code, finding);
    }
    // Where the driver's own call was not seen, its launches are not either.
    if (!pinned && suspects.pinned != Pinned::marked && c.failed != nullptr &&
        c.process.tracking.empty()) {
        finding.fixes.push_back(
            {"to have the launch named, run it again with", "export CUDIAG_TRACK=1", false});
    }
    if (fault != nullptr) {
        for (const FaultRemedy& remedy : fault->remedies) {
            finding.fixes.push_back({remedy.text, with_argv(remedy.command, c.process), false});
        }
    }
    const auto limit = [&](const std::string& text) {
        finding.limits += (finding.limits.empty() ? "" : "; ") + text;
    };
    if (suspects.lost) {
        limit(
            "older launches were overwritten in the recording (CUDIAG_RING_MB), and may be the "
            "cause as well");
    }
    if (suspects.pinned == Pinned::no || suspects.pinned == Pinned::unseen) {
        limit("memory that one kernel spoils may fault in another");
    }
    return finding;
}

}  // namespace cudiag
