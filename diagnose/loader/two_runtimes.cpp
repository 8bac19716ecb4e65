#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <set>

#include "diagnose/cuda/told.h"
#include "diagnose/knowledge/knowledge.h"
#include "diagnose/loader/file_version.h"
#include "diagnose/loader/rules.h"
#include "diagnose/say.h"

namespace cudiag {
namespace {

// Libraries that keep state of their own in each copy: handles of one copy mean nothing to the
// other.
bool keeps_state(const std::string& family) {
    static const std::set<std::string> families{"cudart", "cublas", "cublasLt",
                                                "cudnn",  "nccl",   "cupti"};
    return families.count(family) > 0;
}

std::vector<std::string> needed_by(const std::vector<Module>& modules, const std::string& soname) {
    std::vector<std::string> users;
    for (const Module& module : modules) {
        const ElfRead read = read_elf(module.path);
        if (read.file &&
            std::count(read.file->needed.begin(), read.file->needed.end(), soname) > 0) {
            users.push_back(module.path);
        }
    }
    return users;
}

// CUDA_ERROR_INVALID_HANDLE, cudaErrorInvalidResourceHandle: what one runtime says to a stream or
// an event of the other.
constexpr int kInvalidHandle = 400;

// Did the process fail of a handle that is none to the runtime which got it? Then two runtimes are
// more than untidy.
std::optional<Told> told_of_a_handle(const Process& process) {
    const std::optional<Told> told = told_of(process);
    return told && told->code == kInvalidHandle ? told : std::nullopt;
}

// The libcudart that gave the error, as far as a call tells it; "" if none does.
std::string refused_by(const Process& process) {
    for (auto error = process.runtime_errors.rbegin(); error != process.runtime_errors.rend();
         ++error) {
        if (error->error == kInvalidHandle) {
            return error->library;
        }
    }
    const FailedCudaCall* call = call_with(process, kInvalidHandle);
    return call != nullptr && library_family(file_name(call->caller)) == "cudart" ? call->caller
                                                                                  : std::string{};
}

void tell_that_it_hurt(const Process& process, const Told& told, Finding& finding) {
    finding.severity = Severity::error;
    finding.title += say(", and one refused a handle: {}", told.error);
    finding.evidence["error"] = told.error;
    finding.evidence["code"] = told.code;
    const std::string by = refused_by(process);
    finding.evidence["refused_by"] = by.empty() ? say("not seen") : by;
    finding.python = told.python;
    finding.limits = say(
        "each copy has its own state, so a stream, event or handle made by one is invalid in the "
        "other, at equal versions too; where the handle came from is not seen: a program can also "
        "use one that it has destroyed");
}

Finding two_copies(const Process& process, const std::string& family,
                   const std::vector<const Module*>& copies, const std::vector<Module>& modules) {
    Finding finding;
    finding.slug = "loader-two-runtimes";
    // The process did fail, but nothing shows that it failed of this.
    finding.severity = Severity::warning;
    finding.confidence = Confidence::likely;
    finding.pid = process.pid;
    finding.argv = process.argv;
    finding.time_ns = process.end_time_ns != 0 ? process.end_time_ns : process.start_time_ns;
    auto list = nlohmann::ordered_json::array();
    std::set<std::string> sonames;
    for (const Module* copy : copies) {
        const ElfRead read = read_elf(copy->path);
        const std::string soname = read.file ? read.file->soname : "";
        sonames.insert(soname);
        const auto owner = owner_of(copy->path);
        list.push_back({{"path", copy->path},
                        {"soname", soname},
                        {"inode", copy->inode},
                        {"version", file_version(copy->path)},
                        {"package", owner ? say("{} {} ({})", owner->name, owner->version,
                                                name_of(owner->manager))
                                          : std::string{}},
                        {"needed_by", needed_by(modules, soname)}});
    }
    finding.title = sonames.size() > 1
                        ? say("{} different majors of lib{} are mapped in one process: {}",
                              copies.size(), family, fmt::join(sonames, ", "))
                        : say("{} copies of {} are mapped in one process, from different paths",
                              copies.size(), *sonames.begin());
    finding.evidence["library"] = family;
    finding.evidence["copies"] = std::move(list);
    finding.fixes.push_back(
        sonames.size() > 1
            ? Fix{say("build or install everything for one CUDA major (see needed_by for who wants "
                      "which)"),
                  "", false}
            : Fix{say("let both find the same file: import the framework that ships it first, or "
                      "put "
                      "its directory first"),
                  fmt::format("export LD_LIBRARY_PATH={}${{LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}}",
                              shell_quoted(
                                  copies.front()->path.substr(0, copies.front()->path.rfind('/')))),
                  false});
    finding.limits = say(
        "each copy has its own state, so a stream, event or handle made by one is invalid in the "
        "other, at equal versions "
        "too; whether this program passes any across is not seen here");
    return finding;
}

}  // namespace

std::vector<Finding> loader_two_runtimes(const Process& process) {
    std::vector<Finding> findings;
    if (process.snapshots.empty()) {
        return findings;
    }
    const std::vector<Module>& modules = process.snapshots.rbegin()->second;
    std::map<std::string, std::vector<const Module*>> families;
    for (const Module& module : modules) {
        const std::string family = library_family(file_name(module.path));
        if (!keeps_state(family)) {
            continue;
        }
        auto& copies = families[family];
        const bool same_file = std::any_of(copies.begin(), copies.end(), [&](const Module* known) {
            return known->inode != 0 && known->inode == module.inode &&
                   known->device == module.device;
        });
        if (!same_file) {
            copies.push_back(&module);
        }
    }
    const std::optional<Told> of_a_handle = told_of_a_handle(process);
    for (const auto& [family, copies] : families) {
        if (copies.size() > 1) {
            findings.push_back(two_copies(process, family, copies, modules));
            if (of_a_handle && family == "cudart") {
                tell_that_it_hurt(process, *of_a_handle, findings.back());
            }
        }
    }
    return findings;
}

}  // namespace cudiag
