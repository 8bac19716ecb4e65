#include <fmt/core.h>

#include <algorithm>
#include <filesystem>

#include "cli/commands.h"
#include "cli/runs.h"
#include "diagnose/loader/mapped.h"
#include "diagnose/say.h"
#include "present/build_tree.h"
#include "present/finding_json.h"
#include "present/libraries.h"
#include "present/profile_block.h"
#include "present/spoken.h"
#include "present/terminal.h"

namespace cudiag {
namespace {

int list_runs(bool json) {
    auto list = nlohmann::ordered_json::array();
    for (const std::string& run : all_runs()) {
        const Facts facts = gather_facts(run);
        if (json) {
            list.push_back(report_json(facts, {})["run"]);
        } else {
            fmt::print("{}", render_run(facts, style_for(1)));
        }
    }
    if (json) {
        fmt::print("{}", json_line(list));
    }
    return kNothingFound;
}

std::optional<std::string> wanted_run(const std::string& name) {
    if (!name.empty()) {
        return find_run(name);
    }
    const std::vector<std::string> runs = all_runs();
    return runs.empty() ? std::nullopt : std::optional{runs.front()};
}

bool unreadable_directory(const std::string& run) {
    std::error_code error;
    const std::filesystem::directory_iterator entries{run, error};
    if (error) {
        complain(say("cannot read {}: {}", run, error.message()));
    }
    return static_cast<bool>(error);
}

}  // namespace

int report_command(const ReportOptions& options) {
    if (options.list) {
        return list_runs(options.json);
    }
    const std::optional<std::string> run = wanted_run(options.run);
    if (!run) {
        complain(options.run.empty()
                     ? say("no runs are recorded in {}; a run that meets no trouble leaves none",
                           runs_directory())
                     : say("no run {} (cudiag report --list shows those in {})", options.run,
                           runs_directory()));
        return kCouldNotRun;
    }
    if (unreadable_directory(*run)) {
        return kCouldNotRun;
    }
    const Facts facts = gather_facts(*run);  // after this: what happened, and what was not readable
    const std::vector<Finding> findings = findings_of(facts);  // after this: causes first
    for (const std::string& what : facts.unreadable) {
        complain(say("cannot read {}", what));
    }
    if (facts.processes.empty() && facts.build.empty() && findings.empty()) {
        if (facts.unreadable.empty()) {
            complain(say("{} holds no recordings", *run));
        }
        return kCouldNotRun;
    }
    const std::vector<Profile> profiles = profiles_of(facts);
    if (options.profile_files.wanted()) {
        return write_profile_files(profiles, options.profile_files, *run);
    }
    const std::vector<ProcessLibraries> libraries = libraries_of(facts);
    if (options.json) {
        nlohmann::ordered_json json = report_json(facts, findings, libraries);
        json["profiles"] = nlohmann::ordered_json::array();
        for (const Profile& profile : profiles) {
            json["profiles"].push_back(profile_json(profile));
        }
        fmt::print("{}", json_line(json));
    } else {
        const Style style = style_for(1);
        fmt::print("{}{}", render_run(facts, style), render_build(facts.build, style));
        for (const Profile& profile : profiles) {
            fmt::print("\n{}", render_profile(profile, style, ""));
        }
        const std::vector<Finding> others = without_profiles(findings);
        if (!others.empty()) {
            fmt::print("\n{}", render_findings(others, style, ""));
        } else if (profiles.empty()) {
            fmt::print("  {}\n", spoken(say("nothing found: what was recorded were probes, or no "
                                            "cause is established")));
        }
        if (!libraries.empty()) {
            fmt::print("\n{}", render_libraries(libraries, style));
        }
    }
    const bool errors = std::any_of(findings.begin(), findings.end(), [](const Finding& finding) {
        return finding.severity == Severity::error;
    });
    return errors ? kFound : kNothingFound;
}

}  // namespace cudiag
