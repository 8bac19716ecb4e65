#include "diagnose/build/judge.h"

#include <algorithm>

#include "diagnose/build/rules.h"

namespace cudiag {
namespace {

using BuildRule = std::optional<Finding> (*)(const BuildCase&);

// The first that speaks is the finding of a failed step: limits before names, since a compiler that
// was killed, or could not start another, looks for nothing any more; releases before headers,
// since a compile that is refused goes on to fail of others; last what is told from a number alone.
constexpr BuildRule kBuildRules[] = {build_out_of_memory,        build_process_limit,
                                     build_missing_compiler,     build_unsupported_host_compiler,
                                     build_unsupported_arch,     build_toolkit_mismatch,
                                     build_missing_header,       build_link_failed,
                                     build_incompatible_headers, build_out_of_address_space};

std::optional<Finding> first_finding(const BuildCase& c) {
    for (const BuildRule rule : kBuildRules) {
        if (auto finding = rule(c)) {
            return finding;
        }
    }
    return std::nullopt;
}

bool is_known(const std::vector<BuildFinding>& findings, const Finding& finding) {
    return std::any_of(findings.begin(), findings.end(), [&](const BuildFinding& known) {
        return known.finding.slug == finding.slug && known.finding.title == finding.title;
    });
}

}  // namespace

std::vector<BuildFinding> judge_build(const Facts& facts) {
    std::vector<BuildFinding> findings;
    for (const BuildCase& c : failed_steps(facts)) {
        auto finding = first_finding(c);
        if (!finding && findings.empty()) {
            break;  // the first failure is the cause, and it is not known
        }
        // Others that failed of the same are one failure.
        if (finding && !is_known(findings, *finding)) {
            findings.push_back({std::move(*finding), !findings.empty()});
        }
    }
    if (findings.empty()) {
        for (const Process& process : facts.processes) {
            if (process.failed()) {
                if (auto finding = build_text_finding(facts, process)) {
                    findings.push_back({std::move(*finding), false});
                }
            }
        }
    }
    for (Finding& finding : build_stale_locks(facts)) {
        findings.push_back({std::move(finding), false});
    }
    if (facts.root_runs) {  // no step can have told it yet
        if (auto finding = build_missing_compiler_ahead(facts)) {
            findings.push_back({std::move(*finding), false});
        }
    }
    for (auto note : {build_wrong_accelerator(facts), build_slow(facts)}) {
        if (note) {
            findings.push_back({std::move(*note), false});
        }
    }
    return findings;
}

}  // namespace cudiag
