// build-out-of-memory, in two rules: a compiler was killed by the kernel for memory, or it came to
// the end of its address space (RLIMIT_AS). The text is "Killed" at best; what tells is the signal,
// the cgroup's count of kills, and the limit.
#include <fmt/core.h>
#include <sys/wait.h>

#include <algorithm>
#include <csignal>

#include "diagnose/build/known_peaks.h"
#include "diagnose/build/rules.h"
#include "diagnose/build/words.h"
#include "diagnose/say.h"
#include "diagnose/units.h"

namespace cudiag {
namespace {

bool includes_torch(const BuildCase& c) {
    constexpr std::string_view kInclude = "/torch/include";
    const auto names_it = [&](const BuildStep& step) {
        return std::any_of(step.argv.begin(), step.argv.end(), [&](const std::string& word) {
            return word.size() >= kInclude.size() &&
                   word.compare(word.size() - kInclude.size(), kInclude.size(), kInclude) == 0;
        });
    };
    return names_it(c.step) || std::any_of(c.above.begin(), c.above.end(),
                                           [&](const BuildStep* step) { return names_it(*step); });
}

// The largest peak of this tool that this build has seen, or a known figure; 0 if there is none.
std::uint64_t need_of(const BuildCase& c) {
    std::uint64_t need = c.step.peak_bytes;
    for (const BuildStep& other : c.facts.build.steps) {
        if (other.tool() == c.step.tool() && !other.failed()) {
            need = std::max(need, other.peak_bytes);
        }
    }
    // For a step that was killed, whose own peak nobody knows.
    if (includes_torch(c)) {
        need = std::max(need, known_peak(c.step.tool()));
    }
    return need;
}

bool is_below(const Build& build, const BuildStep& step, const BuildStep& top) {
    constexpr int kDeepest = 64;
    const BuildStep* above = &step;
    for (int depth = 0; above != nullptr && above != &top && depth < kDeepest; ++depth) {
        above = build.parent_of(*above);
    }
    return above == &top;
}

// The compilers proper that ran when the step ended: ninja and make run several commands at once,
// and nvcc several compilers (--threads).
struct AtOnce {
    std::size_t all = 1;
    std::size_t of_this_nvcc = 1;
};

AtOnce at_once(const BuildCase& c) {
    constexpr std::string_view kBig[] = {"cc1plus", "cc1", "cicc", "cudafe++", "ptxas"};
    const Build& build = c.facts.build;
    const BuildStep* nvcc = c.nvcc();
    AtOnce count{0, 0};
    for (const BuildStep& step : build.steps) {
        const bool ran =
            step.start_ns <= c.step.end_ns && (step.end_ns == 0 || step.end_ns >= c.step.end_ns);
        if (ran && std::find(std::begin(kBig), std::end(kBig), step.tool()) != std::end(kBig)) {
            ++count.all;
            count.of_this_nvcc += nvcc != nullptr && is_below(build, step, *nvcc) ? 1 : 0;
        }
    }
    return {std::max<std::size_t>(count.all, 1), std::max<std::size_t>(count.of_this_nvcc, 1)};
}

std::uint64_t value_or_zero(const std::optional<std::uint64_t>& number) {
    return number.value_or(0);
}

// The count of kills before the first step of the same cgroup and after this one.
std::uint64_t kills_before(const BuildCase& c) {
    return value_or_zero(c.step.at_start.oom_kills);
}

std::uint64_t kills_after(const BuildCase& c) {
    std::uint64_t after = value_or_zero(c.step.at_end.oom_kills);
    for (const BuildStep* above : c.above) {
        if (above->at_start.cgroup == c.step.at_start.cgroup) {
            after = std::max(after, value_or_zero(above->at_end.oom_kills));
        }
    }
    for (const AskedProgram& failed : c.facts.build.asked_programs) {
        if (failed.limits.cgroup == c.step.at_start.cgroup) {
            after = std::max(after, value_or_zero(failed.limits.oom_kills));
        }
    }
    return after;
}

// Fills in what both rules say alike.
struct Memory {
    std::uint64_t limit = 0;
    std::string limit_kind;
    std::uint64_t peak = 0;
    std::uint64_t need = 0;  // 0: not known
    std::size_t jobs = 1;
    std::uint64_t max_jobs = 1;
};

Finding memory_finding(const BuildCase& c, std::string title, Memory& memory) {
    memory.need = need_of(c);
    const AtOnce count = at_once(c);
    memory.jobs = count.all;
    const std::uint64_t fewer = memory.jobs > 1 ? memory.jobs - 1 : 1;
    // Where a need or a limit is not known, half of what did not fit.
    const std::uint64_t fits =
        memory.limit == 0 || memory.need == 0 ? memory.jobs / 2 : memory.limit / memory.need;
    memory.max_jobs = std::max<std::uint64_t>(1, std::min(fits, fewer));
    const std::string source = c.source();
    if (!source.empty()) {
        title += say(" while it compiled {}", base_name(source));
    }
    Finding finding = begin_finding(c, "build-out-of-memory", std::move(title));
    nlohmann::ordered_json& evidence = finding.evidence;
    evidence["program"] = c.step.tool();
    evidence["signal"] = c.step.signal == SIGKILL ? "SIGKILL" : "none";
    evidence["source"] = source;
    evidence["limit_bytes"] = memory.limit;
    evidence["limit_kind"] = memory.limit_kind;
    evidence["cgroup"] = c.step.at_start.cgroup;
    evidence["peak_bytes"] = memory.peak;
    evidence["oom_kill_before"] = kills_before(c);
    evidence["oom_kill_after"] = kills_after(c);
    evidence["jobs_at_once"] = memory.jobs;
    evidence["needed_bytes"] = memory.need;
    evidence["max_jobs"] = memory.max_jobs;
    if (count.of_this_nvcc > 1) {
        evidence["threads_of_nvcc"] = count.of_this_nvcc;
    }
    if (memory.jobs > 1 && count.of_this_nvcc == memory.jobs) {
        finding.fixes.push_back(
            {.text = say("one nvcc ran {} compilers at once (--threads): let {} run; "
                         "MAX_JOBS does not count them",
                         memory.jobs, memory.max_jobs),
             .command = fmt::format("export NVCC_THREADS={}", memory.max_jobs)});
    } else if (memory.jobs > 1) {
        finding.fixes.push_back(
            {.text = say("{} compilers ran at once: let {} run", memory.jobs, memory.max_jobs),
             .command = fmt::format("export MAX_JOBS={} NVCC_THREADS=1", memory.max_jobs)});
    }
    return finding;
}

Fix fix_by_more_memory(const std::string& tool, const Memory& memory) {
    constexpr std::uint64_t kGiga = 1'000'000'000;
    const std::string than = memory.limit == 0 ? say("there is") : bytes_text(memory.limit);
    if (memory.need == 0 || memory.need / kGiga + 2 <= memory.limit / kGiga) {
        return {.text = say("give the build more memory than {} (for a container: docker "
                            "run --memory=…)",
                            than),
                .command = ""};
    }
    return {.text = say("give the build more memory than {}: one {} needs about {}; for a "
                        "container: docker run --memory={}g",
                        than, tool, bytes_text(memory.need), memory.need / kGiga + 2),
            .command = ""};
}

}  // namespace

std::optional<Finding> build_out_of_memory(const BuildCase& c) {
    if (c.step.signal != SIGKILL) {
        return std::nullopt;
    }
    const StepLimits& limits = c.step.at_start;
    const bool by_kernel = kills_after(c) > kills_before(c);
    Memory memory;
    memory.limit = value_or_zero(limits.memory_limit);
    memory.limit_kind =
        memory.limit == 0 ? say("none known") : say("cgroup v{}", limits.cgroup_version);
    memory.peak = value_or_zero(c.step.at_end.memory_peak);
    const std::string tool = c.step.tool();
    std::string title = say("{} was killed (SIGKILL)", tool);
    if (by_kernel && memory.limit != 0) {
        title +=
            say(" by the kernel for memory, at the cgroup's limit of {}", bytes_text(memory.limit));
    } else if (by_kernel) {
        // The count grows too when the whole machine has none left (kernel: mm/oom_kill.c).
        title += say(" by the kernel: this machine had no memory left");
    }
    Finding finding = memory_finding(c, std::move(title), memory);
    finding.confidence = by_kernel ? Confidence::certain : Confidence::likely;
    finding.fixes.push_back(fix_by_more_memory(tool, memory));
    finding.limits = by_kernel
                         ? say("what a compiler of another source file needs is not known")
                         : say("who sent SIGKILL is not known: no memory cgroup counted a kill; "
                               "the kernel's log would tell (dmesg)");
    return finding;
}

std::optional<Finding> build_out_of_address_space(const BuildCase& c) {
    constexpr std::uint64_t kNear = 70;  // per cent: the piece that did not fit is not counted
    const std::uint64_t limit = value_or_zero(c.step.at_start.mapped_limit);
    if (limit == 0 || c.step.signal != 0 || c.step.status == 0 ||
        c.step.mapped_bytes < limit / 100 * kNear) {
        return std::nullopt;
    }
    Memory memory;
    memory.limit = limit;
    memory.limit_kind = "RLIMIT_AS";
    memory.peak = c.step.mapped_bytes;
    Finding finding =
        memory_finding(c,
                       say("{} ran out of address space at the limit of {} (ulimit -v)",
                           c.step.tool(), bytes_text(limit)),
                       memory);
    finding.confidence = Confidence::likely;
    finding.fixes.insert(finding.fixes.begin(), {.text = say("lift the limit for the build"),
                                                 .command = "ulimit -v unlimited"});
    finding.limits = say(
        "it is told from how near the step came to the limit ({} mapped at most) before it failed: "
        "a mistake in the source would look the same",
        bytes_text(c.step.mapped_bytes));
    return finding;
}

}  // namespace cudiag
