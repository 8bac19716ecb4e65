#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include "diagnose/cuda/running_rules.h"
#include "diagnose/cuda/suspects.h"
#include "diagnose/knowledge/cuda.h"
#include "diagnose/knowledge/gpu_exceptions.h"
#include "diagnose/knowledge/gpu_faults.h"
#include "diagnose/loader/surroundings.h"
#include "diagnose/say.h"

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

// "writes_out_of_bounds, block (0, 0, 0), thread (3, 0, 0), faults.cu:26".
std::string words_of(const GpuException& exception) {
    std::string words = brief_kernel_name(exception.kernel);
    if (exception.thread_known) {
        words += say(", block {}, thread {}", extent(exception.block_index),
                     extent(exception.thread_index));
    }
    return exception.source.empty()
               ? words
               : words + ", " + exception.source.substr(exception.source.rfind('/') + 1);
}

nlohmann::ordered_json as_json(const GpuException& exception) {
    nlohmann::ordered_json told;
    const GpuExceptionKind* known = gpu_exception_kind(exception.code);
    told["exception"] = known != nullptr ? known->name : say("exception {}", exception.code);
    told["meaning"] = known != nullptr ? say_known(known->text) : say("not known");
    told["kernel"] = brief_kernel_name(exception.kernel);
    if (!exception.kernel.empty()) {
        told["signature"] = kernel_name(exception.kernel);
    }
    if (exception.grid != std::array<std::uint64_t, 3>{}) {
        told["grid"] = extent(exception.grid);
        told["block"] = extent(exception.block);
    }
    if (exception.thread_known) {
        told["block_index"] = extent(exception.block_index);
        told["thread_index"] = extent(exception.thread_index);
    }
    if (!exception.function.empty()) {
        told["place"] =
            fmt::format("{}+{:#x}", brief_kernel_name(exception.function), exception.offset);
    }
    if (exception.pc != 0) {
        told["pc"] = fmt::format("{:#x}", exception.pc);
    }
    if (!exception.source.empty()) {
        told["source"] = exception.source;
    }
    return told;
}

// Of threads that had the same exception at the same place the first one is told, and how many
// there were.
nlohmann::ordered_json exceptions_of(const GpuCore& core) {
    auto told = nlohmann::ordered_json::array();
    std::map<std::tuple<std::uint32_t, std::string, std::uint64_t>, std::size_t> places;
    for (const GpuException& exception : core.exceptions) {
        const auto [place, is_new] =
            places.emplace(std::tuple{exception.code, exception.kernel, exception.pc}, told.size());
        if (is_new && told.size() < kMostTold) {
            told.push_back(as_json(exception));
            told.back()["threads"] = 0;
        }
        if (place->second < told.size() && exception.thread_known) {
            told[place->second]["threads"] = told[place->second]["threads"].get<int>() + 1;
        }
    }
    return told;
}

void add_core(const GpuCore& core, Finding& finding) {
    finding.evidence["core_dump"] =
        core.problem.empty() ? core.path : say("{}: {}", core.path, core.problem);
    if (core.exceptions.empty()) {
        return;
    }
    finding.evidence["exceptions"] = exceptions_of(core);
    finding.evidence["gpu"] = core.device.empty() ? say("not known") : core.device;
    if (!core.driver.empty()) {
        finding.evidence["core_dump_by"] = say("driver {}, CUDA {}", core.driver, core.cuda);
    }
}

std::vector<std::string> kernels_in(const Suspects& suspects) {
    std::vector<std::string> kernels;
    kernels.reserve(suspects.launches.size());
    for (const CudaLaunch* launch : suspects.launches) {
        kernels.push_back(launch->kernel);
    }
    return kernels;
}

std::string title_of(const RunningCase& c, const Suspects& suspects, const GpuFault* fault) {
    const CudaError* known = cuda_error(c.told.code);
    const std::string what = fault != nullptr   ? say_known(fault->title)
                             : known != nullptr ? known->text
                                                : say("error {}", c.told.code);
    if (suspects.pinned == Pinned::core) {
        return say("{}: {}", what, words_of(*first_exception(c.process)));
    }
    if (suspects.pinned == Pinned::unseen) {
        return what + say("; which kernel it was is not known");
    }
    const CudaLaunch& first = *suspects.launches.front();
    if (suspects.launches.size() == 1) {
        return say("{}: {}", what, launch_name(first));
    }
    if (suspects.pinned == Pinned::marked) {
        const std::size_t others = suspects.launches.size() - 1;
        return others == 1 ? say("{}: {}, or what 1 other stream ran at that time", what,
                                 launch_name(first))
                           : say("{}: {}, or what {} other streams ran at that time", what,
                                 launch_name(first), others);
    }
    return say("{}, in one of {} launches that were not known to be finished", what,
               suspects.pending);
}

// Of 719, which stands for any exception, the core tells which one it was.
int surest_code(const RunningCase& c) {
    constexpr int kLaunchFailed = 719;  // CUDA_ERROR_LAUNCH_FAILED (cuda.h)
    const GpuExceptionKind* known = gpu_exception_kind(first_exception(c.process)->code);
    return c.told.code == kLaunchFailed && known != nullptr ? known->error : c.told.code;
}

std::string how_pinned(Pinned pinned) {
    switch (pinned) {
        case Pinned::core:
            return say("the core dump of the GPU names the kernel");
        case Pinned::waited:
            return say("CUDIAG_SYNC=1 waited for this launch, and the wait gave the error");
        case Pinned::marked:
            return say(
                "CUDIAG_TRACK=1: of each stream the first launch that the GPU had not finished");
        case Pinned::only_one:
            return say("it was the only launch that was not known to be finished");
        case Pinned::no:
            return say("not pinned: any launch since the last wait may be the one");
        case Pinned::unseen:
            return say("no launch was seen that was not finished");
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
void add_hints(const std::vector<std::string>& kernels, int code, Finding& finding) {
    std::set<std::string> told;
    for (const std::string& kernel : kernels) {
        const KernelHint* hint = kernel_hint(kernel_name(kernel), code);
        if (hint != nullptr && told.insert(hint->text).second) {
            finding.fixes.push_back({say_known(hint->text), hint->command, false});
        }
    }
}

}  // namespace

std::optional<Finding> cuda_async_error(const RunningCase& c) {
    if (!c.sticky) {
        return std::nullopt;
    }
    const Suspects suspects = suspects_of(c);
    const bool by_core = suspects.pinned == Pinned::core;
    const int code = by_core ? surest_code(c) : c.told.code;
    const GpuFault* fault = gpu_fault(code);
    Finding finding = begin_finding(c, "cuda-async-error", title_of(c, suspects, fault));
    const bool pinned = by_core || (suspects.launches.size() == 1 && suspects.pinned != Pinned::no);
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
        finding.evidence["tracking"] = say("off, though asked for: {}", c.process.tracking);
    }
    if (c.process.gpu_core) {
        add_core(*c.process.gpu_core, finding);
    }
    if (pinned && suspects.launches.size() == 1 && !suspects.launches.front()->python.empty()) {
        finding.python = suspects.launches.front()->python;
    }
    if (by_core) {
        add_hints({first_exception(c.process)->kernel}, code, finding);
        finding.fixes.push_back(
            {say("to look at the threads that are left on the GPU, and their registers"),
             "cuda-gdb -ex " + shell_quoted("target cudacore " + c.process.gpu_core->path), false});
    } else if (pinned || suspects.pinned == Pinned::marked) {
        add_hints(kernels_in(suspects), code, finding);
    }
    // Where the driver's own call was not seen, its launches are not either.
    if (!pinned && suspects.pinned != Pinned::marked && c.failed != nullptr &&
        c.process.tracking.empty()) {
        finding.fixes.push_back(
            {say("to have the launch named, run it again with"), "export CUDIAG_TRACK=1", false});
    }
    if (fault != nullptr) {
        for (const FaultRemedy& remedy : fault->remedies) {
            finding.fixes.push_back(
                {say_known(remedy.text), with_argv(remedy.command, c.process), false});
        }
    }
    const auto limit = [&](const std::string& text) {
        finding.limits += (finding.limits.empty() ? "" : "; ") + text;
    };
    if (suspects.lost) {
        limit(
            say("older launches were overwritten in the recording (CUDIAG_RING_MB), and may be the "
                "cause as well"));
    }
    if (suspects.pinned == Pinned::no || suspects.pinned == Pinned::unseen) {
        limit(say("memory that one kernel spoils may fault in another"));
    }
    if (by_core) {
        limit(
            say("where the exception arose is certain; what it read there may come from a kernel "
                "before it"));
        const GpuCore& core = *c.process.gpu_core;
        if (core.threads > core.exceptions.size()) {
            limit(say("of {} threads with an exception the first {} are counted by place",
                      core.threads, core.exceptions.size()));
        }
    }
    return finding;
}

}  // namespace cudiag
