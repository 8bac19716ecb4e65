#include <fmt/core.h>

#include <algorithm>

#include "diagnose/knowledge/knowledge.h"
#include "diagnose/loader/library_path.h"
#include "diagnose/loader/rules.h"

namespace cudiag {

std::optional<Finding> loader_stub_driver(const Process& process) {
    if (process.snapshots.empty()) {
        return std::nullopt;
    }
    const std::vector<Module>& modules = process.snapshots.rbegin()->second;
    const auto stub = std::find_if(modules.begin(), modules.end(), [](const Module& module) {
        return library_family(file_name(module.path)) == "cuda" && is_stub(module.path);
    });
    if (stub == modules.end()) {
        return std::nullopt;
    }
    Finding finding;
    finding.slug = "loader-stub-driver";
    finding.pid = process.pid;
    finding.argv = process.argv;
    finding.time_ns = process.end_time_ns != 0 ? process.end_time_ns : process.start_time_ns;
    finding.title =
        fmt::format("the libcuda in use is the toolkit's stub, {}: it holds no driver", stub->path);
    const LoadState state = load_state_of(process, {});
    const std::string asked = file_name(stub->path);
    const Lookup lookup = resolve_needed(state, asked, {process.exe});
    std::string rule = "by its path";
    std::string directory = stub->path.substr(0, stub->path.rfind('/'));
    bool from_variable = false;
    for (const SearchStep& step : lookup.steps) {
        if (step.matched) {
            rule = why(step);
            directory = step.dir;
            from_variable = step.rule == Rule::ld_library_path;
        }
    }
    finding.evidence["path"] = stub->path;
    finding.evidence["why"] = rule;
    finding.evidence["asked"] = asked;
    finding.evidence["searched"] = searched_json(lookup.steps);
    std::vector<Copy> copies = find_copies("libcuda.so.1", process, modules, state.config);
    copies.erase(
        std::remove_if(copies.begin(), copies.end(), [](const Copy& copy) { return copy.stub; }),
        copies.end());
    finding.evidence["real_driver"] =
        copies.empty() ? nlohmann::ordered_json{"none found on this machine"} : copies_json(copies);
    if (from_variable) {
        const std::string rest = without_directory(state.ld_library_path, directory);
        finding.fixes.push_back(
            {fmt::format("take {} out of LD_LIBRARY_PATH: stubs are for linking alone", directory),
             rest.empty() ? "unset LD_LIBRARY_PATH"
                          : "export LD_LIBRARY_PATH=" + shell_quoted(rest),
             false});
    } else {
        finding.fixes.push_back(
            {fmt::format("take {} out of the search ({}): stubs are for linking alone", directory,
                         rule),
             "", false});
    }
    if (copies.empty()) {
        finding.fixes.push_back(
            {"and run where an NVIDIA driver is installed: none was found here", "", false});
    }
    finding.limits =
        "error 34 (cudaErrorStubLibrary) comes from this; other failures of the run may have other "
        "causes";
    return finding;
}

}  // namespace cudiag
