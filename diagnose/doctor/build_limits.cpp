// What a build needs beside its tools: memory, and a directory that it may write to.
#include <fmt/core.h>

#include <algorithm>
#include <cstdlib>

#include "diagnose/build/known_peaks.h"
#include "diagnose/build/rules.h"
#include "diagnose/build/words.h"
#include "diagnose/doctor/predicted.h"
#include "diagnose/doctor/rules.h"
#include "diagnose/loader/surroundings.h"
#include "diagnose/say.h"
#include "diagnose/units.h"

namespace cudiag {
namespace {

// The Python that waits for the build has torch in memory (docs/howto/a-build-fails.md).
constexpr std::uint64_t kPythonWithTorch = 650'000'000;
constexpr std::uint64_t kSourcesOfFusedAdam = 2;  // ninja compiles both at once if it may

void add(Checks& checks, const char* name, Health health, std::string text,
         std::optional<Finding> finding = std::nullopt) {
    checks.push_back({.question = Question::build,
                      .name = name,
                      .health = health,
                      .text = std::move(text),
                      .observed = false,
                      .finding = std::move(finding)});
}

struct MemoryLimit {
    std::uint64_t bytes = 0;
    std::string what;  // "the cgroup /docker/…"
    std::string remedy, command;
    bool shared_with_python = true;
    bool hard = true;  // enforced whatever else runs
};

// The tightest one; bytes 0 if nothing is known.
MemoryLimit tightest(const DoctorFacts& facts) {
    MemoryLimit limit;
    const auto consider = [&](MemoryLimit other) {
        if (other.bytes != 0 && (limit.bytes == 0 || other.bytes < limit.bytes)) {
            limit = std::move(other);
        }
    };
    consider({facts.memory_available, say("this machine has free now"),
              say("run it on a machine with more memory"), "", false, false});
    if (facts.memory) {
        consider({facts.memory->limit, say("the memory cgroup {} allows", facts.memory->path),
                  say("give it more (for a container: docker run --memory=…)"), "", true});
    }
    consider({facts.address_space, say("ulimit -v allows each process"),
              say("lift the limit of address space"), "ulimit -v unlimited", false});
    return limit;
}

// How many compilers run at once: MAX_JOBS, else what ninja takes (processors + 2, its manual), and
// no more than there are sources.
std::uint64_t jobs_at_once(const DoctorFacts& facts) {
    const std::string given = facts.variable("MAX_JOBS");
    const bool number = !given.empty() && given.find_first_not_of("0123456789") == given.npos;
    const std::uint64_t most =
        number ? std::strtoull(given.c_str(), nullptr, 10) : facts.processors + 2ULL;
    return std::clamp<std::uint64_t>(most, 1, kSourcesOfFusedAdam);
}

Finding memory_finding(std::string title, const MemoryLimit& limit, std::uint64_t jobs,
                       std::uint64_t max_jobs) {
    Finding finding;
    finding.slug = "build-out-of-memory";
    finding.title = std::move(title);
    finding.evidence["limit_bytes"] = limit.bytes;
    finding.evidence["limit_kind"] = limit.what;
    finding.evidence["needed_bytes"] = known_peak("cc1plus");
    finding.evidence["jobs_at_once"] = jobs;
    finding.evidence["max_jobs"] = max_jobs;
    finding.limits = say(
        "what the compilers take was measured on fused_adam with CUDA 13.0 and gcc 12; of another "
        "source file it is not known");
    return finding;
}

}  // namespace

void check_build_memory(const DoctorFacts& facts, Checks& checks) {
    const MemoryLimit limit = tightest(facts);
    if (limit.bytes == 0 || !facts.torch.found()) {
        return;
    }
    const std::uint64_t one = known_peak("cc1plus");
    const std::uint64_t other = known_peak("cicc");
    const std::uint64_t python = limit.shared_with_python ? kPythonWithTorch : 0;
    const std::uint64_t jobs = jobs_at_once(facts);
    const bool per_process = limit.what.rfind("ulimit", 0) == 0;
    const std::uint64_t all = one + (jobs > 1 && !per_process ? other : 0) + python;
    if (limit.bytes < one && limit.hard) {
        Finding finding = memory_finding(say("compiling fused_adam takes {}, and {} {}",
                                             bytes_text(one), limit.what, bytes_text(limit.bytes)),
                                         limit, jobs, 1);
        finding.fixes.push_back({.text = limit.remedy, .command = limit.command});
        finding.fixes.push_back(
            {.text = say("or build it where there is memory, and install it as it is built"),
             .command = fmt::format("DS_BUILD_FUSED_ADAM=1 {} -m pip install --no-build-isolation "
                                    "deepspeed",
                                    shell_quoted(facts.python.path))});
        std::string text = finding.title;
        add(checks, "memory", Health::red, std::move(text), std::move(finding));
    } else if (limit.bytes < all) {
        Finding finding =
            memory_finding(say("compiling fused_adam with {} at once takes {}, and {} {}",
                               jobs == 1 ? say("one compiler") : say("{} compilers", jobs),
                               bytes_text(all), limit.what, bytes_text(limit.bytes)),
                           limit, jobs, 1);
        finding.severity = Severity::warning;
        if (jobs > 1) {
            finding.fixes.push_back(
                {.text = say("compile one file at a time"), .command = "export MAX_JOBS=1"});
        }
        finding.fixes.push_back({.text = limit.remedy, .command = limit.command});
        std::string text = finding.title;
        add(checks, "memory", Health::yellow, std::move(text), std::move(finding));
    } else {
        add(checks, "memory", Health::green,
            say("{} {}; fused_adam takes {} with {}", limit.what, bytes_text(limit.bytes),
                bytes_text(all),
                jobs == 1 ? say("one compiler") : say("{} compilers at once", jobs)));
    }
}

void check_build_directory(const DoctorFacts& facts, Checks& checks) {
    const BuildTools& tools = facts.tools;
    if (!facts.torch.found() || facts.torch.cuda.empty()) {
        return;
    }
    if (!tools.unwritable.empty()) {
        Finding finding;
        finding.slug = "build-no-directory";
        finding.title = say("torch builds in {}, and {} is not to be written to",
                            tools.extensions_root, tools.unwritable);
        finding.evidence["directory"] = tools.extensions_root;
        finding.evidence["unwritable"] = tools.unwritable;
        finding.fixes.push_back({.text = say("let it build where you may write"),
                                 .command = "export TORCH_EXTENSIONS_DIR=/tmp/torch_extensions"});
        std::string text = finding.title;
        add(checks, "build-directory", Health::red, std::move(text), std::move(finding));
        return;
    }
    Facts run = facts.run;
    for (const std::string& lock : tools.locks) {
        run.build.locks.push_back({.time_ns = 0, .pid = 0, .path = lock, .python = {}});
    }
    for (Finding& finding : build_stale_locks(run)) {
        const std::string lock = finding.evidence.value("lock", "");
        const std::string name = base_name(directory_of(lock));
        finding.title =
            say("{} was left by a build that is gone: whoever builds {} waits for it, for ever",
                lock, name);
        std::string text = finding.title;
        // One extension waits; the others do not.
        add(checks, "stale-lock", name == "fused_adam" ? Health::red : Health::yellow,
            std::move(text), ahead_of_time(std::move(finding)));
    }
    add(checks, "build-directory", Health::green,
        say("{} may be written to", tools.extensions_root));
}

}  // namespace cudiag
