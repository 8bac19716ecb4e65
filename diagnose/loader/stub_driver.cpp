#include <algorithm>

#include "diagnose/knowledge/knowledge.h"
#include "diagnose/loader/driver_library.h"
#include "diagnose/loader/library_path.h"
#include "diagnose/loader/rules.h"
#include "diagnose/say.h"

namespace cudiag {

std::optional<Finding> loader_stub_driver(const Process& process) {
    if (process.snapshots.empty()) {
        return std::nullopt;
    }
    const std::vector<Module>& modules = process.snapshots.rbegin()->second;
    const LoadState state = load_state_of(process, {});
    const DriverLibrary driver = driver_library_of(state, modules);
    if (driver.path.empty() || !is_stub(driver.path)) {
        return std::nullopt;
    }
    std::string rule = say("by its path");
    std::string directory = driver.path.substr(0, driver.path.rfind('/'));
    bool from_variable = false;
    for (const SearchStep& step : driver.lookup.steps) {
        if (step.matched) {
            rule = why(step);
            directory = step.dir;
            from_variable = step.rule == Rule::ld_library_path;
        }
    }
    Finding finding;
    finding.slug = "loader-stub-driver";
    finding.confidence = driver.mapped ? Confidence::certain : Confidence::likely;
    finding.pid = process.pid;
    finding.argv = process.argv;
    finding.time_ns = process.end_time_ns != 0 ? process.end_time_ns : process.start_time_ns;
    finding.title =
        say("the libcuda that this process finds is the toolkit's stub, {}: it holds no driver",
            driver.path);
    finding.evidence["path"] = driver.path;
    finding.evidence["mapped"] = driver.mapped
                                     ? say("at the end of the process")
                                     : say("not any more: the CUDA runtime lets a stub go again");
    finding.evidence["why"] = rule;
    finding.evidence["asked"] = driver.lookup.name;
    finding.evidence["searched"] = searched_json(driver.lookup.steps);
    std::vector<Copy> copies = find_copies("libcuda.so.1", process, modules, state.config);
    copies.erase(
        std::remove_if(copies.begin(), copies.end(), [](const Copy& copy) { return copy.stub; }),
        copies.end());
    finding.evidence["real_driver"] =
        copies.empty() ? nlohmann::ordered_json(say("none found on this machine"))
                       : copies_json(copies);
    if (from_variable) {
        const std::string rest = without_directory(state.ld_library_path, directory);
        finding.fixes.push_back(
            {say("take {} out of LD_LIBRARY_PATH: stubs are for linking alone", directory),
             rest.empty() ? "unset LD_LIBRARY_PATH"
                          : "export LD_LIBRARY_PATH=" + shell_quoted(rest),
             false});
    } else {
        finding.fixes.push_back(
            {say("take {} out of the search ({}): stubs are for linking alone", directory, rule),
             "", false});
    }
    if (copies.empty()) {
        finding.fixes.push_back(
            {say("and run where an NVIDIA driver is installed: none was found here"), "", false});
    }
    finding.limits = say(
        "error 34 (cudaErrorStubLibrary) comes from this; other failures of the run may have other "
        "causes");
    return finding;
}

}  // namespace cudiag
