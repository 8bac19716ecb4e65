#include "diagnose/judge.h"

#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <set>
#include <string_view>

#include "diagnose/build/judge.h"
#include "diagnose/build/rules.h"
#include "diagnose/cuda/rules.h"
#include "diagnose/cuda/running_rules.h"
#include "diagnose/knowledge/cuda.h"
#include "diagnose/loader/rules.h"
#include "diagnose/nccl/rules.h"
#include "diagnose/optimizer/rules.h"
#include "diagnose/process/rules.h"
#include "diagnose/say.h"

namespace cudiag {
namespace {

// Numbers findings within their process, so that others can point at them.
class Collector {
  public:
    std::string add(Finding finding) {
        finding.id = fmt::format("{}.{}", finding.pid, ++numbers_[finding.pid]);
        findings_.push_back(std::move(finding));
        return findings_.back().id;
    }

    // The finding of this kind in that process; nullptr if there is none.
    Finding* find(std::int32_t pid, std::string_view slug) {
        const auto found = std::find_if(findings_.begin(), findings_.end(), [&](const Finding& f) {
            return f.pid == pid && f.slug == slug;
        });
        return found == findings_.end() ? nullptr : &*found;
    }

    // The finding in that process whose `error` begins so; nullptr if there is none.
    Finding* find_error(std::int32_t pid, const std::string& beginning) {
        const auto found = std::find_if(findings_.begin(), findings_.end(), [&](const Finding& f) {
            return f.pid == pid && f.evidence.contains("error") &&
                   f.evidence["error"].is_string() &&
                   f.evidence["error"].get<std::string>().rfind(beginning, 0) == 0;
        });
        return found == findings_.end() ? nullptr : &*found;
    }

    std::vector<Finding> take() { return std::move(findings_); }

  private:
    std::map<std::int32_t, int> numbers_;
    std::vector<Finding> findings_;
};

// A program whose last word is an error of CUDA or NCCL says what it failed of: of what it had
// swallowed before, only the driver's own library can have to do with that.
bool is_beside_the_point(const Process& process, Tie tie, const Finding& finding) {
    if (tie != Tie::swallowed || finding.slug == "loader-missing-driver" ||
        process.exceptions.empty()) {
        return false;
    }
    const std::string& message = process.exceptions.front().message;
    return cuda_code_told_by(message) != 0 || tells_of_nccl(message);
}

void judge_failure(const Facts& facts, const Process& process, const LoadFailure& failure, Tie tie,
                   const Machine& machine, Collector& out) {
    if (auto nothing = build_nothing_built(facts, process, failure)) {
        out.add(std::move(*nothing));
        return;
    }
    const LoaderCase c = make_case(process, failure, machine);
    std::optional<Finding> finding = loader_finding(c);
    if (!finding) {
        return;
    }
    if (is_beside_the_point(process, tie, *finding)) {
        finding->severity = Severity::note;
        out.add(std::move(*finding));
        return;
    }
    if (tie == Tie::last_word) {
        finding->confidence = Confidence::likely;
        finding->limits += (finding->limits.empty() ? "" : "; ") +
                           say("that the process ended because of it is inferred: it was the last "
                               "load that failed");
    }
    std::optional<Finding> shadow = loader_shadowed_library(c, *finding);
    std::optional<Finding> hidden = hidden_cause(process, failure, *finding, tie);
    std::vector<std::string> explained;
    if (hidden) {
        explained.push_back(out.add(std::move(*hidden)));
    }
    if (auto cache = build_stale_cache(*finding)) {
        finding->cause_of = std::move(explained);
        cache->cause_of = {out.add(std::move(*finding))};
        out.add(std::move(*cache));
    } else if (shadow) {
        if (!shadow->fixes.empty()) {
            finding->fixes = shadow->fixes;
        }
        finding->cause_of = std::move(explained);
        explained = {out.add(std::move(*finding))};
        shadow->cause_of = std::move(explained);
        out.add(std::move(*shadow));
    } else {
        finding->cause_of = std::move(explained);
        out.add(std::move(*finding));
    }
}

void judge_loads(const Facts& facts, const Process& process, const Machine& machine,
                 Collector& out) {
    std::set<std::string> told;  // the same text again is the same failure again
    for (const LoadFailure& failure : process.failures) {
        const Tie tie = tie_of(process, failure);
        if (tie != Tie::none && told.insert(failure.error).second) {
            judge_failure(facts, process, failure, tie, machine, out);
        }
    }
}

// What the libraries in a failed process tell. If it failed of something that has nothing to do
// with CUDA, that is a note.
void judge_libraries(const Process& process, Collector& out) {
    std::vector<Finding> findings = loader_two_runtimes(process);
    if (auto stub = loader_stub_driver(process)) {
        findings.push_back(std::move(*stub));
    }
    for (Finding& finding : findings) {
        if (!may_be_about_cuda(process)) {
            finding.severity = Severity::note;
        }
        out.add(std::move(finding));
    }
}

// A CUDA that did not start. Where its library could not be loaded, that is the cause and this the
// consequence; a stub in place of the driver explains every code.
void judge_cuda(const Process& process, const Machine& machine, Collector& out) {
    if (out.find(process.pid, "loader-stub-driver") == nullptr) {
        if (auto finding = cuda_cannot_start(process, machine)) {
            const bool no_driver = finding->slug == "cuda-no-driver";
            const std::string id = out.add(std::move(*finding));
            if (Finding* cause = out.find(process.pid, "loader-missing-driver");
                cause != nullptr && no_driver) {
                cause->cause_of.push_back(id);
            }
        }
    }
}

// The finding of a CUDA that cannot start, if there is one: NCCL's failure is its consequence then.
Finding* cuda_cause(std::int32_t pid, Collector& out) {
    for (const char* slug :
         {"loader-missing-driver", "loader-stub-driver", "cuda-no-driver", "cuda-driver-too-old",
          "cuda-device-unavailable", "container-device-revoked"}) {
        if (Finding* cause = out.find(pid, slug)) {
            return cause;
        }
    }
    return nullptr;
}

// A wrong NCCL is told by the loader's findings where a symbol or a file was missing.
bool told_by_loader(std::int32_t pid, Collector& out) {
    const auto about_nccl = [&](const char* slug) {
        const Finding* finding = out.find(pid, slug);
        return finding != nullptr && finding->evidence.dump().find("libnccl") != std::string::npos;
    };
    return about_nccl("loader-symbol-version") || about_nccl("package-broken") ||
           about_nccl("loader-missing-library") || about_nccl("loader-shadowed-library");
}

void judge_nccl(const Facts& facts, const Process& process, const Machine& machine,
                Collector& out) {
    const std::optional<NcclCase> c = nccl_case_of(facts, process, machine);
    if (!c) {
        return;
    }
    if (auto finding = nccl_failed(*c)) {
        const bool by_cuda = finding->slug == "nccl-cuda-error";
        const std::string id = out.add(std::move(*finding));
        if (Finding* cause = by_cuda ? cuda_cause(process.pid, out) : nullptr) {
            cause->cause_of.push_back(id);
        }
    }
    if (!told_by_loader(process.pid, out)) {
        if (auto finding = nccl_other_than_torchs(process)) {
            out.add(std::move(*finding));
        }
    }
}

void note_ranks(const Facts& facts, std::vector<Finding>& findings) {
    for (Finding& finding : findings) {
        for (const Process& process : facts.processes) {
            if (process.pid == finding.pid) {
                finding.rank = rank_of(process);
            }
        }
    }
}

// Do two ranks tell of one and the same failure?
bool same_of_two_ranks(const Finding& a, const Finding& b) {
    const bool by_words = a.slug == "nccl-system-error" || a.slug == "nccl-cuda-error";
    return a.pid != b.pid && a.slug == b.slug && a.slug.rfind("nccl-", 0) == 0 &&
           a.slug != "nccl-remote-error" && a.severity == Severity::error &&
           (!by_words || a.title == b.title);
}

// What every rank says is told once, by the first of them.
void link_same_failures(std::vector<Finding>& findings) {
    std::vector<std::size_t> order(findings.size());
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
        return findings[a].time_ns < findings[b].time_ns;
    });
    for (auto later = order.begin(); later != order.end(); ++later) {
        const auto first = std::find_if(order.begin(), later, [&](std::size_t earlier) {
            return same_of_two_ranks(findings[earlier], findings[*later]);
        });
        if (first != later) {
            findings[*first].cause_of.push_back(findings[*later].id);
        }
    }
}

// A rank that lost another one is explained by what that one failed of.
void link_ranks(std::vector<Finding>& findings) {
    for (const Finding& lost : findings) {
        if (lost.slug != "nccl-remote-error" || !lost.evidence.contains("failed_before")) {
            continue;
        }
        const auto cause =
            std::find_if(findings.begin(), findings.end(), [&](const Finding& finding) {
                return finding.pid == lost.evidence["failed_before"].get<std::int32_t>() &&
                       finding.severity == Severity::error && finding.slug != lost.slug;
            });
        if (cause != findings.end()) {
            cause->cause_of.push_back(lost.id);
        }
    }
}

// std::terminate aborts a process whose exception nobody has caught: what explains the exception
// explains that end.
void link_termination(const Process& process, const std::string& death, Collector& out) {
    if (process.exceptions.empty() || !process.exceptions.front().native) {
        return;
    }
    if (Finding* cause = out.find_error(process.pid, process.exceptions.front().type + ": ")) {
        cause->cause_of.push_back(death);
    }
}

// The driver aborts a process of whose GPU it has written a core dump.
void judge_death(const Process& process, Finding finding, Collector& out) {
    const std::string signal = finding.evidence.value("signal", "");
    const std::string id = out.add(std::move(finding));
    if (signal == "SIGABRT" || signal == "not seen") {
        link_termination(process, id, out);
    }
    Finding* cause = out.find(process.pid, "cuda-async-error");
    if (cause != nullptr && first_exception(process) != nullptr &&
        (signal == "SIGABRT" || signal == "not seen")) {
        cause->cause_of.push_back(id);
    }
}

void judge_builds(const Facts& facts, Collector& out) {
    std::vector<BuildFinding> findings = judge_build(facts);
    std::vector<std::string> consequences;
    for (std::size_t i = findings.size(); i > 0; --i) {
        BuildFinding& each = findings[i - 1];
        if (each.consequence) {
            consequences.push_back(out.add(std::move(each.finding)));
        } else {
            if (i == 1) {
                each.finding.cause_of = consequences;
            }
            out.add(std::move(each.finding));
        }
    }
}

}  // namespace

std::vector<Finding> judge(const Facts& facts, const Machine& machine) {
    Collector out;
    std::vector<ChildDeath> deaths = facts.deaths;
    for (const Process& process : facts.processes) {
        deaths.insert(deaths.end(), process.deaths.begin(), process.deaths.end());
    }
    judge_builds(facts, out);
    for (const Process& process : facts.processes) {
        judge_loads(facts, process, machine, out);
        if (process.failed()) {
            judge_libraries(process, out);
            judge_cuda(process, machine, out);
            judge_nccl(facts, process, machine, out);
        }
        if (auto finding = cuda_gave_an_error(process)) {
            const bool launch_is_sought = finding->slug == "cuda-async-error";
            auto unseen = launch_is_sought ? cuda_unseen_launches(process) : std::nullopt;
            if (unseen) {
                finding->limits += (finding->limits.empty() ? "" : "; ") + unseen->title;
            }
            out.add(std::move(*finding));
            if (unseen) {
                out.add(std::move(*unseen));
            }
        }
        if (auto finding = cuda_ptx_jit_slow(process)) {
            out.add(std::move(*finding));
        }
        if (auto finding = process_killed(process, deaths)) {
            judge_death(process, std::move(*finding), out);
        }
        if (auto finding = record_incomplete(process)) {
            out.add(std::move(*finding));
        }
    }
    for (Finding& finding : judge_profiles(facts, machine)) {
        out.add(std::move(finding));
    }
    if (auto finding = journal_incomplete(facts)) {
        out.add(std::move(*finding));
    }
    std::vector<Finding> findings = out.take();
    note_ranks(facts, findings);
    link_same_failures(findings);
    link_ranks(findings);
    std::set<std::string> explained;
    for (const Finding& finding : findings) {
        explained.insert(finding.cause_of.begin(), finding.cause_of.end());
    }
    // Causes before consequences, errors before warnings, then by time.
    std::stable_sort(findings.begin(), findings.end(), [&](const Finding& a, const Finding& b) {
        const bool a_cause = explained.count(a.id) == 0;
        const bool b_cause = explained.count(b.id) == 0;
        if (a_cause != b_cause) {
            return a_cause;
        }
        if (a.severity != b.severity) {
            return a.severity > b.severity;
        }
        return a.time_ns < b.time_ns;
    });
    return findings;
}

}  // namespace cudiag
