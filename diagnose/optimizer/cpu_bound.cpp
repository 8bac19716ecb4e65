#include <fmt/core.h>

#include <algorithm>

#include "diagnose/optimizer/words.h"
#include "diagnose/say.h"

namespace cudiag {
namespace {

constexpr const char* kVariable = "OMP_NUM_THREADS";

std::string value_in(const Process& process) {
    const auto found = process.environment.find(kVariable);
    return found == process.environment.end() ? "" : found->second;
}

// Who set OMP_NUM_THREADS, as far as the environments of this run's processes tell.
std::string set_by(const ProfileCase& c, const std::string& value) {
    for (const Process& process : c.facts.processes) {
        if (process.pid == c.process.root_pid && process.pid != c.process.pid) {
            const std::string theirs = value_in(process);
            return theirs == value ? say("the environment of the run")
                                   : say("a process between {} and this one (torchrun sets "
                                         "it to 1 for several workers a machine)",
                                         process.argv.empty() ? process.exe : process.argv.front());
        }
    }
    return say("the environment that the program was started with");
}

std::string command_with(const std::string& assignment, const Process& process) {
    std::string command = assignment;
    for (const std::string& argument : process.argv) {
        command += " " + argument;
    }
    return process.argv.empty() ? "" : command;
}

// Ranks of this machine that share its CPUs: LOCAL_WORLD_SIZE as the process was started with it.
std::uint64_t ranks_here(const Process& process) {
    const auto found = process.environment.find("LOCAL_WORLD_SIZE");
    const long ranks = found == process.environment.end() ? 1 : std::atol(found->second.c_str());
    return ranks > 0 ? static_cast<std::uint64_t>(ranks) : 1;
}

// torch's own number is that of its own OpenMP: an extension may compute with another copy of
// libgomp (DeepSpeed's does, seen beside torch 2.11), which goes by the environment alone.
std::optional<std::uint64_t> threads_of(const ProfileCase& c, const Optimizer& optimizer) {
    return optimizer.library.empty() || !value_in(c.process).empty() ? optimizer.cpu_threads
                                                                     : std::nullopt;
}

void add_fixes(const ProfileCase& c, const Optimizer& optimizer, Finding& finding) {
    const std::string value = value_in(c.process);
    const std::uint64_t fair = optimizer.cpus_allowed.value_or(0) / ranks_here(c.process);
    const auto threads = threads_of(c, optimizer);
    if (threads && fair > *threads) {
        finding.fixes.push_back(
            {.text = say("let it use {} threads, {} of this machine's CPUs for each rank", fair,
                         value.empty() ? say("its part") : say("the part")),
             .command = command_with(fmt::format("{}={}", kVariable, fair), c.process)});
    }
    if (optimizer.simd == "scalar") {
        finding.fixes.push_back(
            {.text = say("build its library again where the CPU's vector instructions are seen "
                         "(deepspeed asks py-cpuinfo): this one was built without them"),
             .command = fmt::format("pip install py-cpuinfo && rm -r {}",
                                    optimizer.library.substr(0, optimizer.library.rfind('/')))});
    }
}

}  // namespace

std::optional<Finding> optimizer_cpu_bound(const ProfileCase& c, const Optimizer& optimizer) {
    constexpr double kShare = 0.3;     // of the whole step
    constexpr double kShortest = 5e6;  // ns
    if (optimizer.implementation != Implementation::cpu || !optimizer.share ||
        *optimizer.share < kShare || optimizer.host.median < kShortest ||
        !host_burden(optimizer).empty()) {
        return std::nullopt;
    }
    const std::string value = value_in(c.process);
    Finding finding = finding_of(c, "optimizer-cpu-bound", Severity::warning);
    finding.title = say("{} computes {} of each {} step on the CPU", optimizer.kind,
                        time_text(optimizer.host.median), time_text(optimizer.period.median));
    const auto threads = threads_of(c, optimizer);
    if (threads) {
        finding.title +=
            *threads == 1 ? say(", with 1 thread") : say(", with {} threads", *threads);
        if (optimizer.cpus_allowed) {
            finding.title += say(" on {} CPUs", *optimizer.cpus_allowed);
        }
    }
    auto& evidence = finding.evidence;
    evidence["optimizer"] = optimizer.name;
    evidence["elements"] = optimizer.elements();
    evidence["host_ms"] = milliseconds(optimizer.host.median);
    evidence["training_step_ms"] = milliseconds(optimizer.period.median);
    evidence["copies_ms"] = c.profile.completeness.device_timeline
                                ? nlohmann::ordered_json(milliseconds(optimizer.copy_time_a_step))
                                : nlohmann::ordered_json("unknown");
    evidence["threads"] =
        threads ? nlohmann::ordered_json(*threads) : nlohmann::ordered_json("unknown");
    if (optimizer.cpus_allowed) {
        evidence["cpus_allowed"] = *optimizer.cpus_allowed;
    }
    evidence["omp_num_threads"] = value.empty() ? say("not set") : value;
    if (!value.empty()) {
        evidence["set_by"] = set_by(c, value);
    }
    evidence["simd"] = optimizer.simd.empty() ? "unknown" : optimizer.simd;
    if (!optimizer.simd_source.empty()) {
        evidence["simd_source"] = optimizer.simd_source;
    }
    add_fixes(c, optimizer, finding);
    finding.limits =
        say("how much more threads gain: past the memory's bandwidth they gain nothing; the step's "
            "time "
            "may hold waits for the GPU and for copies");
    return finding;
}

}  // namespace cudiag
