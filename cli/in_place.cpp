// Started by the shim inside a failing run: prints the explanation under the program's own last
// words.
#include <fmt/core.h>
#include <poll.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <set>
#include <string>
#include <string_view>

#include "cli/commands.h"
#include "cli/runs.h"
#include "diagnose/build/rules.h"
#include "diagnose/proc.h"
#include "diagnose/say.h"
#include "present/profile_block.h"
#include "present/spoken.h"
#include "present/terminal.h"

namespace cudiag {
namespace {

// A program that fails of its breakage does so at once, and is then told about at its end, under
// its traceback; one that goes on without the library is told about after this time.
constexpr int kGraceMilliseconds = 2000;
constexpr std::size_t kBlocks = 4;

// Did the process end within the time?
bool ends_within(int pid, int milliseconds) {
    const auto descriptor = static_cast<int>(syscall(SYS_pidfd_open, pid, 0));
    if (descriptor < 0) {  // kernel before 5.3, or the process is gone already
        constexpr int kStep = 50;
        for (int waited = 0; waited < milliseconds && start_ticks_of(pid); waited += kStep) {
            (void)usleep(kStep * 1000);
        }
        return !start_ticks_of(pid);
    }
    pollfd watch{descriptor, POLLIN, 0};
    const bool ended = poll(&watch, 1, milliseconds) == 1;
    (void)close(descriptor);
    return ended;
}

bool all_is_asked_for() {
    const char* print = std::getenv("CUDIAG_PRINT");
    return print != nullptr && std::string_view{print} == "all";
}

// Every load that failed and was asked about, a line each, cause of anything or not.
std::string probes_of(const Facts& facts) {
    std::string text;
    for (const Process& process : facts.processes) {
        for (const LoadFailure& failure : process.failures) {
            const std::string error = printable(failure.error);
            text += fmt::format(
                "cudiag: {}\n",
                spoken(failure.is_lookup ? say("{} lookup failed: {}", process.pid, error)
                                         : say("{} load failed: {}", process.pid, error)));
        }
    }
    return text;
}

// The shim starts us for a root that failed, or that recorded breakage of its own; so a root
// without a recording failed.
bool root_failed(const Facts& facts, int pid) {
    const auto root = std::find_if(facts.processes.begin(), facts.processes.end(),
                                   [&](const Process& process) { return process.pid == pid; });
    return root == facts.processes.end() || root->failed();
}

// A profile was asked for, so what it tells is told; the note itself is its block.
bool is_of_profile(const Finding& finding) {
    return finding.slug.rfind("optimizer-", 0) == 0 || finding.slug.rfind("profile-", 0) == 0;
}

std::string profiles_text(const Facts& facts, const std::string& run) {
    constexpr std::size_t kMost = 2;  // of many ranks, the first
    std::string text;
    const std::vector<Profile> profiles = profiles_of(facts);
    for (std::size_t i = 0; i < std::min(kMost, profiles.size()); ++i) {
        text += (text.empty() ? "" : "\n") + render_profile(profiles[i], style_for(2), run);
    }
    if (profiles.size() > kMost) {
        text += fmt::format("cudiag: {}\n", spoken(say("and {} more profiles: cudiag report {}",
                                                       profiles.size() - kMost, run)));
    }
    return text;
}

// Told in place: what failed, breakage that the root program lives with, and that of a child that
// ended well in a run that did not (a worker hands its error to its parent and exits); and that a
// failed run had built something else than it thought. The rest
// waits for `cudiag report`.
bool worth_printing(const Finding& finding, int pid, bool failed) {
    return finding.severity == Severity::error ||
           (finding.severity == Severity::warning && finding.slug.rfind("loader-", 0) == 0 &&
            (failed || finding.pid == pid)) ||
           (finding.severity == Severity::warning && finding.slug.rfind("build-", 0) == 0 &&
            failed) ||
           is_of_profile(finding);
}

// How long a lock is watched that somebody holds: its owner may die while others wait.
constexpr int kFirstLook = 5000;
constexpr int kNextLook = 10000;
constexpr int kLooks = 180;  // half an hour

// The findings about a lock whose owner is gone, as soon as there are any; none if the program
// ends, or goes on, first.
std::vector<Finding> watch_locks(const InPlaceOptions& options) {
    for (int look = 0; look < kLooks; ++look) {
        if (ends_within(options.pid, look == 0 ? kFirstLook : kNextLook)) {
            return {};
        }
        const Facts facts = gather_facts(options.run);
        std::vector<Finding> findings = build_stale_locks(facts);
        if (!findings.empty()) {
            return findings;
        }
        const bool waits =
            std::any_of(facts.build.locks.begin(), facts.build.locks.end(),
                        [](const FileNote& lock) { return access(lock.path.c_str(), F_OK) == 0; });
        if (!waits) {
            return {};
        }
    }
    return {};
}

// What a build.ninja tells while the build has only begun. It may still be being written.
std::vector<Finding> check_build_file(const InPlaceOptions& options) {
    constexpr int kWritten = 300;
    if (ends_within(options.pid, kWritten)) {
        return {};
    }
    const auto finding = build_missing_compiler_ahead(gather_facts(options.run));
    return finding ? std::vector{*finding} : std::vector<Finding>{};
}

// Beside a program that goes on.
int tell_now(const InPlaceOptions& options, std::vector<Finding> findings) {
    if (findings.empty()) {
        return kNothingFound;  // a run that ends well leaves no file, so none is made for nothing
    }
    findings = claim_for_printing(options.run, findings);
    if (!findings.empty()) {
        const std::string text = "\n" + render_findings(findings, style_for(2), options.run);
        if (write(2, text.data(), text.size()) < 0) {
            return kCouldNotRun;
        }
    }
    return kNothingFound;
}

// A build without CUDA that failed of nothing we know: its own words are all that there is to say.
bool is_nobodys_business(const Facts& facts, const std::vector<Finding>& findings) {
    const auto by_nvcc = [](const BuildStep& step) { return step.tool() == "nvcc"; };
    const auto tells = [](const Process& process) {
        return !process.failures.empty() || !process.exceptions.empty() || !process.deaths.empty();
    };
    return findings.empty() && !facts.build.steps.empty() &&
           std::none_of(facts.build.steps.begin(), facts.build.steps.end(), by_nvcc) &&
           std::none_of(facts.processes.begin(), facts.processes.end(), tells);
}

}  // namespace

int in_place_command(const InPlaceOptions& options) {
    sigset_t none;
    (void)sigemptyset(&none);
    (void)sigprocmask(SIG_SETMASK, &none, nullptr);  // the shim starts us with every signal blocked
    if (options.when == "early" && ends_within(options.pid, kGraceMilliseconds)) {
        return kNothingFound;
    }
    if (options.when == "lock") {
        return tell_now(options, watch_locks(options));
    }
    if (options.when == "build") {
        return tell_now(options, check_build_file(options));
    }
    Facts facts = gather_facts(options.run);
    if (options.when == "exit") {
        facts.root_runs = false;  // it waits for us
    }
    const bool failed = root_failed(facts, options.pid);
    std::vector<Finding> findings = without_profiles(findings_of(facts));
    const std::string profiles =
        options.when == "exit" ? profiles_text(facts, options.run) : std::string{};
    if (options.when == "exit" && !all_is_asked_for() && is_nobodys_business(facts, findings)) {
        remove_run(options.run);
        return kNothingFound;
    }
    findings.erase(std::remove_if(findings.begin(), findings.end(),
                                  [&](const Finding& finding) {
                                      return !worth_printing(finding, options.pid, failed);
                                  }),
                   findings.end());
    // A consequence is told within the block of its cause, and never alone: the cause may have been
    // told early already.
    std::set<std::string> explained;
    for (const Finding& finding : findings) {
        explained.insert(finding.cause_of.begin(), finding.cause_of.end());
    }
    const auto first_consequence = std::stable_partition(
        findings.begin(), findings.end(),
        [&](const Finding& finding) { return explained.count(finding.id) == 0; });
    const std::vector<Finding> consequences{first_consequence, findings.end()};
    findings.erase(first_consequence, findings.end());
    findings = claim_for_printing(options.run, findings);
    const std::size_t all = findings.size();
    if (all > kBlocks) {
        findings.resize(kBlocks);
    }
    if (!findings.empty()) {
        findings.insert(findings.end(), consequences.begin(), consequences.end());
    }
    std::string text = render_findings(findings, style_for(2), options.run);
    if (all > kBlocks) {
        text +=
            fmt::format("cudiag: {}\n",
                        spoken(say("and {} more: cudiag report {}", all - kBlocks, options.run)));
    }
    text += options.when == "exit" && all_is_asked_for() ? probes_of(facts) : std::string{};
    if (!profiles.empty()) {
        text.insert(0, profiles + (text.empty() ? "" : "\n"));
    }
    if (!text.empty()) {
        text.insert(text.begin(), '\n');
        // One write, so that the block is not torn apart by other writers of the same terminal.
        if (write(2, text.data(), text.size()) < 0) {
            return kCouldNotRun;
        }
    }
    prune_runs(options.run);
    return kNothingFound;
}

}  // namespace cudiag
