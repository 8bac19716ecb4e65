// build-process-limit: fork or clone was refused (EAGAIN) because the cgroup or the user has as
// many processes as it may. Compilers and ninja then fail in ways that look like something else.
#include <fmt/core.h>

#include <algorithm>
#include <cerrno>
#include <string_view>

#include "diagnose/build/rules.h"
#include "diagnose/build/words.h"
#include "diagnose/say.h"

namespace cudiag {

namespace {

// The commands of ninja or make that ran when the step failed, one for each job.
std::size_t jobs_at_the_end(const BuildCase& c) {
    std::size_t jobs = 0;
    for (const char* tool : {"nvcc", "gcc", "g++", "cc", "c++", "clang", "clang++"}) {
        for (const BuildStep& step : c.facts.build.steps) {
            const BuildStep* parent = c.facts.build.parent_of(step);
            const bool job =
                step.tool() == tool &&
                (parent == nullptr || parent->tool() == "ninja" || parent->tool() == "make");
            jobs += job && step.start_ns <= c.step.end_ns &&
                            (step.end_ns == 0 || step.end_ns >= c.step.end_ns)
                        ? 1
                        : 0;
        }
    }
    return std::max<std::size_t>(jobs, 1);
}

struct Refusal {
    std::uint64_t limit = 0;  // 0: not known
    std::string kind = "";
    std::uint64_t count = 0;
};

// The cgroup counts what it refuses; of RLIMIT_NPROC only the failed calls tell.
Refusal refusal_of(const BuildCase& c) {
    const std::uint64_t limit = c.step.at_end.process_limit.value_or(0);
    const std::uint64_t before = c.step.at_start.processes_refused.value_or(0);
    const std::uint64_t after = c.step.at_end.processes_refused.value_or(0);
    if (limit != 0 && after > before) {
        return {.limit = limit, .kind = say("cgroup pids.max"), .count = after - before};
    }
    std::uint64_t failed = 0;
    for (const AskedProgram& asked : c.facts.build.asked_programs) {
        failed += asked.error == EAGAIN && asked.parent == c.step.pid
                      ? std::max<std::uint64_t>(asked.places, 1)
                      : 0;
    }
    return {.limit = c.step.at_end.user_process_limit.value_or(0),
            .kind = "RLIMIT_NPROC",
            .count = failed};
}

}  // namespace

std::optional<Finding> build_process_limit(const BuildCase& c) {
    const Refusal refusal = refusal_of(c);
    if (refusal.count == 0) {
        return std::nullopt;
    }
    const bool by_group = std::string_view{refusal.kind} != "RLIMIT_NPROC";
    const std::size_t jobs = jobs_at_the_end(c);
    // One job of a CUDA build is a shell, nvcc, a shell and a compiler with its driver.
    constexpr std::uint64_t kProcessesOfAJob = 6;
    const std::uint64_t fits = std::max<std::uint64_t>(
        1, std::min<std::uint64_t>(refusal.limit / 2 / kProcessesOfAJob, jobs > 1 ? jobs / 2 : 1));
    Finding finding = begin_finding(
        c, "build-process-limit",
        say("no more processes may be started: {} is {}, and {} were refused during the "
            "build",
            by_group ? "pids.max" : say("the user's limit (ulimit -u)"), refusal.limit,
            refusal.count));
    finding.evidence["limit"] = refusal.limit;
    finding.evidence["limit_kind"] = refusal.kind;
    finding.evidence["refused"] = refusal.count;
    finding.evidence["jobs_at_once"] = jobs;
    finding.evidence["max_jobs"] = fits;
    finding.fixes.push_back({.text = say("run fewer compilers at once"),
                             .command = fmt::format("export MAX_JOBS={}", fits)});
    finding.fixes.push_back(
        {.text = say("or build where more processes are allowed: a compute node instead of a login "
                     "node; for a container: docker run --pids-limit=-1"),
         .command = ""});
    finding.limits =
        say("a build that was killed in the middle may have left a lock behind: the next one then "
            "waits");
    return finding;
}

}  // namespace cudiag
