// build-out-of-memory: a compiler was killed by the kernel for memory, or hit RLIMIT_AS. The text
// is "Killed" at best; what tells is the signal, the cgroup's count of kills, and the limit.
#include <fmt/core.h>
#include <sys/wait.h>

#include <algorithm>
#include <csignal>

#include "diagnose/build/rules.h"
#include "diagnose/build/words.h"

namespace cudiag {
namespace {

// Peak memory of one compiler of a PyTorch extension, measured on DeepSpeed's fused_adam
// (CUDA 13.0, gcc 12; docs/howto/a-build-fails.md): for a step that was killed, whose own peak
// nobody knows.
struct KnownPeak {
    const char* tool;
    std::uint64_t bytes;
};

constexpr KnownPeak kPeaks[] = {{"cc1plus", 2'000'000'000},
                                {"cicc", 1'330'000'000},
                                {"cudafe++", 1'210'000'000},
                                {"ptxas", 500'000'000}};

// The largest peak of this tool that this build has seen, or a known figure.
std::uint64_t need_of(const Build& build, const BuildStep& step) {
    std::uint64_t need = 0;
    for (const BuildStep& other : build.steps) {
        if (other.tool() == step.tool() && !other.failed()) {
            need = std::max(need, other.peak_bytes);
        }
    }
    for (const KnownPeak& known : kPeaks) {
        if (step.tool() == known.tool) {
            need = std::max(need, known.bytes);
        }
    }
    return std::max(need, step.peak_bytes);
}

// ninja and make run that many commands at once: the compilers of the same kind that ran then.
std::size_t jobs_of(const BuildCase& c) {
    constexpr const char* kBig[] = {"cc1plus", "cc1", "cicc", "cudafe++", "ptxas"};
    std::size_t jobs = 0;
    for (const char* tool : kBig) {
        jobs += running_at(c.facts.build, tool, c.step.end_ns);
    }
    return std::max<std::size_t>(jobs, 1);
}

std::uint64_t value_or_zero(const std::optional<std::uint64_t>& number) {
    return number.value_or(0);
}

struct Verdict {
    bool killed = false;     // SIGKILL
    bool by_kernel = false;  // the cgroup counted a kill meanwhile
    bool no_address_space = false;
};

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

Verdict verdict_on(const BuildCase& c) {
    Verdict verdict;
    verdict.killed = c.step.signal == SIGKILL;
    verdict.by_kernel = kills_after(c) > kills_before(c);
    const std::uint64_t limit = value_or_zero(c.step.at_start.mapped_limit);
    constexpr std::uint64_t kNear = 70;  // per cent: what did not fit is not counted
    verdict.no_address_space = !verdict.killed && limit != 0 && c.step.status != 0 &&
                               c.step.mapped_bytes >= limit / 100 * kNear;
    return verdict;
}

}  // namespace

std::optional<Finding> build_out_of_memory(const BuildCase& c) {
    const Verdict verdict = verdict_on(c);
    if (!verdict.killed && !verdict.no_address_space) {
        return std::nullopt;
    }
    const StepLimits& limits = c.step.at_start;
    const std::uint64_t limit =
        value_or_zero(verdict.no_address_space ? limits.mapped_limit : limits.memory_limit);
    const std::string kind = limit == 0 ? "none known"
                             : verdict.no_address_space
                                 ? "RLIMIT_AS"
                                 : fmt::format("cgroup v{}", limits.cgroup_version);
    const std::uint64_t need = need_of(c.facts.build, c.step);
    const std::size_t jobs = jobs_of(c);
    const std::uint64_t fits = limit == 0 || need == 0 ? 1 : limit / need;
    const std::uint64_t max_jobs =
        std::max<std::uint64_t>(1, std::min<std::uint64_t>(fits, jobs > 1 ? jobs - 1 : 1));
    const std::string source = c.source();
    const std::string tool = c.step.tool();

    std::string title =
        verdict.no_address_space
            ? fmt::format("{} ran out of address space at the limit of {} (ulimit -v)", tool,
                          bytes_text(limit))
            : fmt::format(
                  "{} was killed (SIGKILL){}", tool,
                  verdict.by_kernel
                      ? fmt::format(" by the kernel for memory, at the cgroup's limit of {}",
                                    bytes_text(limit))
                      : "");
    if (!source.empty()) {
        title += " while it compiled " + base_name(source);
    }
    Finding finding = begin_finding(c, "build-out-of-memory", std::move(title));
    if (!verdict.by_kernel && !verdict.no_address_space) {
        finding.confidence = Confidence::likely;
    }
    nlohmann::ordered_json& evidence = finding.evidence;
    evidence["program"] = tool;
    evidence["signal"] = verdict.killed ? "SIGKILL" : "none";
    evidence["source"] = source;
    evidence["limit_bytes"] = limit;
    evidence["limit_kind"] = kind;
    evidence["cgroup"] = limits.cgroup;
    const std::uint64_t peak =
        verdict.no_address_space ? c.step.mapped_bytes : value_or_zero(c.step.at_end.memory_peak);
    evidence["peak_bytes"] = peak;
    evidence["oom_kill_before"] = kills_before(c);
    evidence["oom_kill_after"] = kills_after(c);
    evidence["jobs_at_once"] = jobs;
    evidence["needed_bytes"] = need;
    evidence["max_jobs"] = max_jobs;

    if (jobs > 1) {
        finding.fixes.push_back(
            {.text = fmt::format("{} compilers ran at once: let {} run", jobs, max_jobs),
             .command = fmt::format("export MAX_JOBS={} NVCC_THREADS=1", max_jobs)});
    }
    if (verdict.no_address_space) {
        finding.fixes.push_back(
            {.text = "lift the limit for the build", .command = "ulimit -v unlimited"});
    } else {
        constexpr std::uint64_t kGiga = 1'000'000'000;
        finding.fixes.push_back(
            {.text = fmt::format("give the build more memory than {}: one {} needs about {}; for a "
                                 "container: docker run --memory={}g",
                                 limit == 0 ? "there is" : bytes_text(limit), tool,
                                 bytes_text(need), need / kGiga + 2),
             .command = ""});
    }
    finding.limits = verdict.by_kernel || verdict.no_address_space
                         ? "what a compiler of another source file needs is not known"
                         : "who sent SIGKILL is not known: no memory cgroup counted a kill; the "
                           "kernel's log would tell (dmesg)";
    return finding;
}

}  // namespace cudiag
