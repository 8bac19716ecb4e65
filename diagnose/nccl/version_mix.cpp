#include <fmt/core.h>

#include <algorithm>

#include "diagnose/knowledge/knowledge.h"
#include "diagnose/loader/case.h"
#include "diagnose/loader/file_version.h"
#include "diagnose/loader/library_path.h"
#include "diagnose/loader/surroundings.h"
#include "diagnose/nccl/rules.h"
#include "diagnose/packages/requirements.h"
#include "diagnose/say.h"

namespace cudiag {
namespace {

// torch's own requirement: "nvidia-nccl-cu13" "2.29.7".
struct Wanted {
    std::string torch, package, version;
};

std::optional<Wanted> wanted_by_torch(const Process& process, const std::vector<Module>& modules) {
    const bool torch_is_in = std::any_of(modules.begin(), modules.end(), [](const Module& module) {
        return file_name(module.path).rfind("libtorch_cuda", 0) == 0;
    });
    for (const std::string& site :
         torch_is_in ? site_packages_dirs(process, modules) : std::vector<std::string>{}) {
        const auto torch = pip_package(site, "torch");
        if (!torch) {
            continue;
        }
        for (const Requirement& requirement : requirements_of(*torch)) {
            if (requirement.name.rfind("nvidia-nccl-", 0) == 0 &&
                requirement.spec.rfind("==", 0) == 0) {
                return Wanted{.torch = torch->version,
                              .package = requirement.name,
                              .version = requirement.spec.substr(2)};
            }
        }
        break;
    }
    return std::nullopt;
}

// Only what leads back to torch's own file: out of the variable that brought the other one, or the
// package anew that was replaced.
void propose(const Process& process, const Wanted& wanted, const std::string& path,
             Finding& finding) {
    const std::string directory = path.substr(0, path.rfind('/'));
    const auto variable = process.environment.find("LD_LIBRARY_PATH");
    const std::vector<std::string> entries = variable == process.environment.end()
                                                 ? std::vector<std::string>{}
                                                 : library_path_entries(variable->second);
    if (std::any_of(entries.begin(), entries.end(),
                    [&](const std::string& entry) { return same_directory(entry, directory); })) {
        const std::string rest = without_directory(variable->second, directory);
        finding.fixes.push_back(
            {say("take {} out of LD_LIBRARY_PATH, so that torch finds its own", directory),
             rest.empty() ? "unset LD_LIBRARY_PATH"
                          : "export LD_LIBRARY_PATH=" + shell_quoted(rest),
             false});
        return;
    }
    const auto owner = owner_of(path);
    if (owner && owner->manager == PackageManager::pip &&
        owner->name.rfind("nvidia-nccl-", 0) == 0) {
        finding.fixes.push_back(
            {say("install the NCCL that this torch asks for"),
             fmt::format("{} -m pip install --no-deps {}=={}", python_command(process),
                         wanted.package, wanted.version),
             false});
    }
}

}  // namespace

std::optional<Finding> nccl_version_mix(const NcclCase& c) {
    if (c.cause->slug != "nccl-version-mix") {
        return std::nullopt;
    }
    Finding finding = begin_finding(c);
    const auto words = words_of(c);
    finding.evidence["versions"] = {{{"rank", c.value("a")}, {"nccl", words.at("a_version")}},
                                    {{"rank", c.value("b")}, {"nccl", words.at("b_version")}}};
    finding.evidence["processes_here"] = ranks_json(c);
    return finding;
}

std::optional<Finding> nccl_other_than_torchs(const Process& process) {
    if (!process.failed() || process.snapshots.empty()) {
        return std::nullopt;
    }
    const std::vector<Module>& modules = process.snapshots.rbegin()->second;
    const auto nccl = std::find_if(modules.begin(), modules.end(), [](const Module& module) {
        return library_family(file_name(module.path)) == "nccl";
    });
    const auto wanted = wanted_by_torch(process, modules);
    if (nccl == modules.end() || !wanted) {
        return std::nullopt;
    }
    const std::string version = file_version(nccl->path);
    const int order = version.empty() ? 0 : compare_versions(version, wanted->version);
    if (order == 0) {
        return std::nullopt;
    }
    Finding finding;
    finding.slug = "nccl-version-mix";
    // A newer one is meant to work, and is installed on purpose.
    finding.severity = order < 0 ? Severity::warning : Severity::note;
    finding.confidence = Confidence::likely;
    finding.pid = process.pid;
    finding.argv = process.argv;
    finding.time_ns = process.end_time_ns != 0 ? process.end_time_ns : process.start_time_ns;
    finding.title =
        say("the NCCL in this process is {}, {} than the {} that torch {} asks for", version,
            order < 0 ? say("older") : say("newer"), wanted->version, wanted->torch);
    const auto owner = owner_of(nccl->path);
    finding.evidence["nccl"] = nccl->path;
    finding.evidence["nccl_version"] = version;
    finding.evidence["nccl_package"] =
        owner ? say("{} {} ({})", owner->name, owner->version, name_of(owner->manager))
              : say("none known");
    finding.evidence["torch"] = wanted->torch;
    finding.evidence["torch_asks_for"] = wanted->package + "==" + wanted->version;
    if (order < 0) {
        propose(process, *wanted, nccl->path, finding);
    }
    finding.limits = say("that NCCL failed because of it is not observed");
    return finding;
}

}  // namespace cudiag
