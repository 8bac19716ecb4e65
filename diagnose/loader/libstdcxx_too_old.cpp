#include <fmt/core.h>

#include <algorithm>

#include "diagnose/knowledge/knowledge.h"
#include "diagnose/loader/rules.h"
#include "diagnose/loader/wrong_copy.h"
#include "diagnose/say.h"

namespace cudiag {
namespace {

bool is_gnu_runtime_version(const std::string& version) {
    return version.rfind("GLIBCXX_", 0) == 0 || version.rfind("CXXABI_", 0) == 0 ||
           version.rfind("GCC_", 0) == 0 || version.rfind("GOMP_", 0) == 0;
}

// The newest version of the same family that a file defines: GLIBCXX_3.4.28 when GLIBCXX_3.4.30 is
// wanted.
std::string best_version(const std::string& path, const std::string& wanted) {
    const std::string family = wanted.substr(0, wanted.find('_') + 1);
    std::string best;
    const ElfRead read = read_elf(path);
    if (!read.file) {
        return best;
    }
    for (const std::string& version : read.file->defined_versions) {
        const bool numbered = version.rfind(family, 0) == 0 && version.size() > family.size() &&
                              version[family.size()] >= '0' && version[family.size()] <= '9';
        if (numbered && (best.empty() || compare_versions(version.substr(family.size()),
                                                          best.substr(family.size())) > 0)) {
            best = version;
        }
    }
    return best;
}

}  // namespace

std::optional<Finding> loader_libstdcxx_too_old(const LoaderCase& c) {
    if (c.error.form != ErrorForm::missing_version || !is_gnu_runtime_version(c.error.version)) {
        return std::nullopt;
    }
    const std::string soname = file_name(c.error.provider);
    const std::string best = best_version(c.error.provider, c.error.version);
    const Source source = source_of(c, soname, c.error.subject);
    std::vector<Copy> copies = copies_near(c, soname, source.searched);
    const auto good = std::find_if(copies.begin(), copies.end(), [&](const Copy& copy) {
        return copy.why_not.empty() && defines_version(copy.path, c.error.version);
    });

    Finding finding =
        begin_finding(c, "loader-libstdcxx-too-old",
                      say("{} needs {}, and the {} in use, {}, ends at {}",
                          file_name(c.error.subject), c.error.version, soname, c.error.provider,
                          best.empty() ? say("no version of that family") : best));
    finding.evidence["file"] = c.error.subject;
    finding.evidence["wanted"] = c.error.version;
    finding.evidence["wanted_from"] = brought_by(c.error.version);
    finding.evidence["in_use"] = c.error.provider;
    finding.evidence["in_use_best"] = best;
    finding.evidence["why_in_use"] = why_chosen(source);
    finding.evidence["brought_by"] = source.brought_by;
    finding.evidence["searched"] = searched_json(source.searched);
    for (Copy& copy : copies) {
        if (copy.why_not.empty()) {
            const std::string newest = best_version(copy.path, c.error.version);
            copy.version = newest.empty() ? copy.version : newest;
        }
    }
    finding.evidence["near_misses"] = copies_json(copies);
    if (good != copies.end()) {
        finding.evidence["new_enough"] = good->path;
        finding.fixes = fixes_for_wrong_copy(c, source, *good);
    }
    const auto conda = c.process.environment.find("CONDA_PREFIX");
    if (conda != c.process.environment.end() && good == copies.end()) {
        finding.fixes.push_back({say("bring the environment's C++ runtime up to date"),
                                 "conda install -c conda-forge 'libstdcxx-ng>=12'", false});
    }
    if (finding.fixes.empty()) {
        finding.fixes.push_back(
            {say("build {} with the compiler whose runtime is used here, or bring {} ({})",
                 file_name(c.error.subject), c.error.version, brought_by(c.error.version)),
             "", false});
    }
    finding.limits =
        say("says nothing of whether the newer copy suits every other library of the process");
    return finding;
}

}  // namespace cudiag
