#include "diagnose/doctor/predicted.h"

#include "diagnose/build/rules.h"
#include "diagnose/loader/rules.h"

namespace cudiag {

std::optional<Finding> explained_exception(const DoctorFacts& facts, const std::string& type,
                                           const std::string& message,
                                           const std::string& function) {
    Process process = facts.process();
    PythonException exception;
    exception.type = type;
    exception.message = message;
    if (!function.empty()) {
        exception.python.push_back({.file = "", .line = 0, .function = function});
    }
    process.exceptions.push_back(std::move(exception));
    auto finding = build_text_finding(facts.run, process);
    return finding ? std::optional{ahead_of_time(std::move(*finding))} : std::nullopt;
}

PredictedStep::PredictedStep(const DoctorFacts& facts, const std::string& tool_path,
                             bool under_nvcc)
    : facts_{facts}, under_nvcc_{under_nvcc} {
    const auto failing = [&](BuildStep& step, const std::string& path) {
        step.exe = path;
        step.argv = {path};
        step.cwd = facts.process().cwd;
        step.how = EndHow::exit;
        step.status = 1;
    };
    const HostPass& pass = under_nvcc ? facts.tools.nvcc_host : facts.tools.cxx;
    failing(step_, tool_path);
    failing(caller_, pass.tool.path);
    failing(nvcc_, facts.tools.nvcc.path);
    nvcc_.environment = facts.process().environment;
    caller_.environment = facts.process().environment;
    step_.argv.insert(step_.argv.end(), pass.flags.begin(), pass.flags.end());
}

BuildCase PredictedStep::build_case() const {
    BuildCase c{.facts = facts_.run, .step = step_, .above = {}, .root = &facts_.process()};
    c.above.push_back(&caller_);
    if (under_nvcc_) {
        c.above.push_back(&nvcc_);
    }
    return c;
}

std::optional<Finding> explained_load(const DoctorFacts& facts, const std::string& file,
                                      const LoadTrial& trial, const std::vector<Module>& before) {
    Process process = facts.process();
    // ld.so maps nothing where a library is missing; it has mapped all when it looks for symbols.
    const bool missing = parse_loader_error(trial.error).form == ErrorForm::missing_file;
    process.snapshots[1] = missing ? before : trial.modules;
    LoadFailure failure;
    failure.asked = file;
    failure.error = trial.error;
    failure.breakage = true;
    failure.snapshot = 1;
    const LoaderCase c = make_case(process, failure, facts.machine);
    std::optional<Finding> finding = loader_finding(c);
    if (!finding) {
        return std::nullopt;
    }
    if (auto cache = build_stale_cache(*finding)) {
        return ahead_of_time(std::move(*cache));
    }
    if (auto shadow = loader_shadowed_library(c, *finding)) {
        if (shadow->fixes.empty()) {
            shadow->fixes = finding->fixes;
        }
        return ahead_of_time(std::move(*shadow));
    }
    return ahead_of_time(std::move(*finding));
}

Finding ahead_of_time(Finding finding) {
    finding.python.clear();
    finding.argv.clear();
    finding.evidence.erase("failed");
    finding.evidence.erase("started_by");
    return finding;
}

}  // namespace cudiag
