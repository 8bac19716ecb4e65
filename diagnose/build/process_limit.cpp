// build-process-limit: fork or clone was refused (EAGAIN) because the cgroup or the user has as
// many processes as it may. Compilers and ninja then fail in ways that look like something else.
#include <fmt/core.h>

#include <algorithm>

#include "diagnose/build/rules.h"
#include "diagnose/build/words.h"

namespace cudiag {

std::optional<Finding> build_process_limit(const BuildCase& c) {
    const std::uint64_t limit = c.step.at_end.process_limit.value_or(0);
    const std::uint64_t before = c.step.at_start.processes_refused.value_or(0);
    const std::uint64_t after = c.step.at_end.processes_refused.value_or(0);
    if (limit == 0 || after <= before) {
        return std::nullopt;
    }
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
    jobs = std::max<std::size_t>(jobs, 1);
    // One job of a CUDA build is a shell, nvcc, a shell and a compiler with its driver.
    constexpr std::uint64_t kProcessesOfAJob = 6;
    const std::uint64_t fits = std::max<std::uint64_t>(
        1, std::min<std::uint64_t>(limit / 2 / kProcessesOfAJob, jobs > 1 ? jobs / 2 : 1));
    Finding finding = begin_finding(
        c, "build-process-limit",
        fmt::format("no more processes may be started: pids.max is {}, and {} were refused during "
                    "the build",
                    limit, after - before));
    finding.evidence["limit"] = limit;
    finding.evidence["limit_kind"] = "cgroup pids.max";
    finding.evidence["refused"] = after - before;
    finding.evidence["jobs_at_once"] = jobs;
    finding.evidence["max_jobs"] = fits;
    finding.fixes.push_back({.text = "run fewer compilers at once",
                             .command = fmt::format("export MAX_JOBS={}", fits)});
    finding.fixes.push_back(
        {.text = "or build where more processes are allowed: a compute node instead of a login "
                 "node; for a container: docker run --pids-limit=-1",
         .command = ""});
    finding.limits =
        "a build that was killed in the middle may have left a lock behind: the next one then "
        "waits";
    return finding;
}

}  // namespace cudiag
