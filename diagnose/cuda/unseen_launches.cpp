#include <algorithm>
#include <array>

#include "diagnose/cuda/running_rules.h"
#include "diagnose/elf/elf_file.h"
#include "diagnose/say.h"

namespace cudiag {
namespace {

// cuda.h; in libcuda also with endings: _ptsz, and Ex of the first.
constexpr std::array<std::string_view, 3> kLaunches = {
    "cuLaunchKernel", "cuLaunchCooperativeKernel", "cuGraphLaunch"};

bool launches(const DynamicSymbol& symbol) {
    return !symbol.defined &&
           std::any_of(kLaunches.begin(), kLaunches.end(), [&](std::string_view launch) {
               return symbol.name.compare(0, launch.size(), launch) == 0;
           });
}

bool needs_driver(const std::string& path) {
    const ElfRead read = read_elf(path);
    return read.file && std::any_of(read.file->needed.begin(), read.file->needed.end(),
                                    [](const std::string& needed) {
                                        return needed.compare(0, 10, "libcuda.so") == 0;
                                    });
}

}  // namespace

std::optional<Finding> cuda_unseen_launches(const Process& process) {
    auto objects = nlohmann::ordered_json::array();
    std::string first;
    if (process.snapshots.empty()) {
        return std::nullopt;
    }
    for (const Module& module : process.snapshots.rbegin()->second) {
        if (module.path.empty() || module.path.front() != '/' || !needs_driver(module.path)) {
            continue;
        }
        auto functions = nlohmann::ordered_json::array();
        for (const DynamicSymbol& symbol : dynamic_symbols(module.path)) {
            if (launches(symbol)) {
                functions.push_back(symbol.name);
            }
        }
        if (!functions.empty()) {
            first = first.empty() ? module.path.substr(module.path.rfind('/') + 1) : first;
            objects.push_back({{"path", module.path}, {"functions", std::move(functions)}});
        }
    }
    if (objects.empty()) {
        return std::nullopt;
    }
    Finding finding;
    finding.slug = "cuda-unseen-launches";
    finding.severity = Severity::warning;
    finding.title =
        objects.size() == 1
            ? say("launches of {} are not seen: the kernel at fault may be its", first)
            : say("launches of {} and {} more are not seen: the kernel at fault may be theirs",
                  first, objects.size() - 1);
    finding.pid = process.pid;
    finding.argv = process.argv;
    finding.time_ns = process.end_time_ns;
    auto paths = nlohmann::ordered_json::array();
    for (const auto& object : objects) {
        paths.push_back(object.at("path"));
    }
    finding.evidence["objects"] = std::move(paths);
    finding.evidence["functions"] = objects.front().at("functions");
    finding.evidence["why"] = say(
        "linked with -lcuda: ld.so gives the driver's functions to them, and libcudiag.so exports "
        "none of these");
    finding.limits = say("that they have launched anything is not known");
    return finding;
}

}  // namespace cudiag
