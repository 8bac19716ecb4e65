#include <fmt/core.h>

#include "diagnose/knowledge/knowledge.h"
#include "diagnose/loader/rules.h"
#include "diagnose/say.h"

namespace cudiag {
namespace {

// Files that a container runtime binds in from the host bring the host's needs with them.
std::string injected_by(const std::string& path) {
    if (path.rfind("/.singularity.d/libs/", 0) == 0) {
        return say("apptainer --nv, from the host");
    }
    if (path.rfind("/usr/local/nvidia/", 0) == 0) {
        return say("the node's driver installer, from the host");
    }
    return {};
}

}  // namespace

std::optional<Finding> loader_glibc_too_old(const LoaderCase& c) {
    if (c.error.form != ErrorForm::missing_version || c.error.version.rfind("GLIBC_", 0) != 0) {
        return std::nullopt;
    }
    const std::string& file = c.error.subject;
    const std::string& present = c.state.config.glibc_version;
    const std::string injected = injected_by(file);
    const auto owner = owner_of(file);
    Finding finding = begin_finding(
        c, "loader-glibc-too-old",
        say("{} needs {}, and this system's glibc is {}", file, c.error.version, present));
    finding.evidence["file"] = file;
    finding.evidence["wanted"] = c.error.version;
    finding.evidence["wanted_from"] = brought_by(c.error.version);
    finding.evidence["present"] = present;
    finding.evidence["origin"] =
        !injected.empty() ? say("bound in by {}", injected)
        : owner           ? say("{} {} ({})", owner->name, owner->version, name_of(owner->manager))
                : say("no package on this machine owns it: built or copied from elsewhere");
    const std::string wanted = c.error.version.substr(c.error.version.find('_') + 1);
    if (!injected.empty()) {
        finding.fixes.push_back(
            {say("use an image whose glibc is {} or newer: the host's file needs it", wanted), "",
             false});
        finding.fixes.push_back({say("or keep this file out of the container: take it out of the "
                                     "host's nvliblist.conf"),
                                 "", false});
    } else if (owner && owner->manager == PackageManager::pip) {
        finding.fixes.push_back(
            {say("take a wheel built for this glibc (an older manylinux tag), or an older release"),
             pip_install(c, fmt::format("--force-reinstall --only-binary :all: '{}<{}'",
                                        owner->name, owner->version)),
             false});
        finding.fixes.push_back(
            {say("or run on a system whose glibc is {} or newer", wanted), "", false});
    } else {
        finding.fixes.push_back(
            {say("build it on this system, or on one whose glibc is no newer than this one's"), "",
             false});
        finding.fixes.push_back(
            {say("or run on a system whose glibc is {} or newer", wanted), "", false});
    }
    finding.limits = say(
        "glibc belongs to the system: do not copy a newer libc.so.6 in, nor upgrade it inside an "
        "image for this; every "
        "program of the image depends on it");
    return finding;
}

}  // namespace cudiag
