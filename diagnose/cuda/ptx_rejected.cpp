#include <fmt/core.h>

#include <algorithm>
#include <set>

#include "diagnose/cuda/device_code.h"
#include "diagnose/cuda/gpu.h"
#include "diagnose/cuda/running_rules.h"
#include "diagnose/knowledge/cuda.h"
#include "diagnose/knowledge/cuda_figures.h"
#include "diagnose/knowledge/ptx_versions.h"
#include "diagnose/say.h"

namespace cudiag {
namespace {

// CUresult (cuda.h).
constexpr int kInvalidImage = 200;
constexpr int kInvalidPtx = 218;
constexpr int kUnsupportedPtxVersion = 222;

// What is known of the PTX and of the driver that was to compile it.
struct Versions {
    std::string driver;                   // its CUDA: "13.0"; "" if not known
    std::string newest_known;             // PTX that such a driver compiles: "9.0"; "" likewise
    std::string asked;                    // the newest of the PTX in question: "9.2"; "" likewise
    std::optional<bool> known;            // `asked`, to this driver
    bool told = false;                    // by the compiler in the driver itself
    const PtxVersion* made_by = nullptr;  // the CUDA that first writes `asked`
};

std::string newest_known_to(const std::string& driver) {
    std::string newest;
    for (const PtxVersion* version : all_ptx_versions()) {
        if (ptx_known_to(driver, version->ptx).value_or(false)) {
            newest = version->ptx;
        }
    }
    return newest;
}

// The newest of the versions; one that is not known yet is newer than all that are.
std::string newest_in(const std::vector<DeviceCode>& code) {
    const std::vector<const PtxVersion*> order = all_ptx_versions();
    const auto place = [&](const std::string& ptx) {
        return std::find_if(order.begin(), order.end(),
                            [&](const PtxVersion* version) { return version->ptx == ptx; });
    };
    std::string newest;
    for (const DeviceCode& one : code) {
        if (one.ptx && !one.ptx_version.empty() &&
            (newest.empty() || place(newest) < place(one.ptx_version))) {
            newest = one.ptx_version;
        }
    }
    return newest;
}

Versions versions_of(const RunningCase& c, const CodeInQuestion& code, const std::string& log) {
    Versions versions;
    if (c.process.cuda_driver) {
        versions.driver = cuda_release_of(c.process.cuda_driver->version);
        versions.newest_known = newest_known_to(versions.driver);
    }
    versions.asked = newest_in(code.code);
    for (const TextValues& figures : figures_of(log)) {
        const auto asked = figures.find("ptx_version");
        const auto known = figures.find("ptx_known");
        if (asked != figures.end() && known != figures.end()) {
            versions.asked = asked->second;
            versions.newest_known = known->second;
            versions.known = false;
            versions.told = true;
        }
    }
    if (!versions.told && !versions.asked.empty()) {
        versions.known = ptx_known_to(versions.driver, versions.asked);
    }
    versions.made_by = ptx_version(versions.asked);
    return versions;
}

bool is_too_new(int code, const Versions& versions) {
    return code == kUnsupportedPtxVersion ? versions.known != std::optional<bool>{true}
                                          : versions.told;
}

// The line of the log that says what is wrong.
std::string line_of(const std::string& log) {
    std::string first;
    for (std::size_t begin = 0; begin < log.size();) {
        const std::size_t end = std::min(log.find('\n', begin), log.size());
        std::string line = log.substr(begin, end - begin);
        if (line.find("error") != std::string::npos || line.find("fatal") != std::string::npos) {
            return line;
        }
        first = first.empty() ? line : first;
        begin = end + 1;
    }
    return first;
}

std::string driver_text(const Versions& versions) {
    return versions.driver.empty() ? say("the driver")
                                   : say("the driver (CUDA {})", versions.driver);
}

std::string title_of(const RunningCase& c, const CodeInQuestion& code, const Versions& versions,
                     const std::string& log) {
    const std::string what = code_text(code);
    if (is_too_new(c.told.code, versions)) {
        if (versions.asked.empty() || !versions.known) {
            return say("the PTX of {} is newer than {}{} compiles", what,
                       versions.newest_known.empty() ? std::string{}
                                                     : say("the {} that ", versions.newest_known),
                       driver_text(versions));
        }
        return say(
            "the PTX of {} is of version {}{}, and {} compiles none after {}", what, versions.asked,
            versions.made_by == nullptr ? std::string{} : say(" (CUDA {})", versions.made_by->cuda),
            driver_text(versions), versions.newest_known);
    }
    if (c.told.code == kUnsupportedPtxVersion) {
        return say("{} refused PTX of {} as too new, though none in it is", driver_text(versions),
                   what);
    }
    return log.empty() ? say("the compiler in {} rejected the PTX of {}; why was not kept",
                             driver_text(versions), what)
                       : say("the compiler in {} rejected the PTX of {}: {}", driver_text(versions),
                             what, line_of(log));
}

void add_fixes(const CodeInQuestion& code, const Versions& versions,
               const std::optional<CudaDevice>& device, Finding& finding) {
    const auto add = [&](const std::string& text) {
        finding.fixes.push_back({(finding.fixes.empty() ? "" : "or ") + text, "", false});
    };
    const std::string than =
        versions.driver.empty() ? say("the driver's CUDA") : "CUDA " + versions.driver;
    const int sm = device ? device->compute_capability() : 0;
    if (!code.package.empty()) {
        add(say("install a build of {} that was made with {} or older", code.package, than));
    } else if (!code.file.empty()) {
        if (sm != 0 && !is_for_one_architecture(code.code)) {
            Fix native = build_for(code, sm);
            native.text += say(": the driver need not compile what is there for it already");
            finding.fixes.push_back(std::move(native));
        }
        add(say("build {} with an nvcc of {} or older", code.file.substr(code.file.rfind('/') + 1),
                than));
    } else {
        add(
            say("let what made the code (nvcc, NVRTC, nvJitLink, numba, Triton) be of {} or "
                "older",
                than));
    }
    const bool sure = versions.made_by != nullptr && versions.known == std::optional<bool>{false};
    add(!sure ? say("upgrade the driver to one of the CUDA that made the code, or newer")
              : say("upgrade the driver to one of CUDA {} or newer{}", versions.made_by->cuda,
                    versions.made_by->driver.empty()
                        ? std::string{}
                        : say(" (branch {})", versions.made_by->driver)));
}

}  // namespace

std::optional<Finding> cuda_ptx_rejected(const RunningCase& c) {
    const std::string log = c.failed == nullptr ? std::string{} : c.failed->jit_log;
    const bool is_ptx = c.told.code == kInvalidPtx || c.told.code == kUnsupportedPtxVersion ||
                        (c.told.code == kInvalidImage && !log.empty());
    if (c.sticky || !is_ptx) {
        return std::nullopt;
    }
    const CodeInQuestion code = code_of(c);
    const Versions versions = versions_of(c, code, log);
    const std::optional<CudaDevice> device = c.failed == nullptr ? std::nullopt : c.failed->device;
    Finding finding = begin_finding(c, "cuda-ptx-rejected", title_of(c, code, versions, log));
    const auto or_unknown = [](const std::string& text) {
        return text.empty() ? say("not known") : text;
    };
    finding.evidence["ptx_version"] = or_unknown(versions.asked);
    finding.evidence["driver_cuda"] = or_unknown(versions.driver);
    finding.evidence["newest_ptx_of_driver"] = or_unknown(versions.newest_known);
    if (versions.made_by != nullptr) {
        finding.evidence["needs_cuda"] = versions.made_by->cuda;
    }
    constexpr std::size_t kMostOfLog = 600;
    if (!log.empty()) {
        finding.evidence["jit_log"] = log.substr(0, kMostOfLog);
    }
    add_gpu(device, finding.evidence);
    add_code(code, finding.evidence);
    const auto limit = [&](const std::string& text) {
        finding.limits += (finding.limits.empty() ? "" : "; ") + text;
    };
    if (is_too_new(c.told.code, versions)) {
        add_fixes(code, versions, device, finding);
        if (!code.exact && !versions.told && !versions.asked.empty()) {
            limit(
                say("the version is the newest in the file: which of its images was refused is not "
                    "known"));
        }
    } else {
        limit(c.told.code == kUnsupportedPtxVersion ? say("which PTX the driver means was not seen")
                                                    : say("the PTX itself is not looked into"));
    }
    if (c.failed == nullptr) {
        limit(say("the call that failed was not seen, nor the code"));
    }
    return finding;
}

}  // namespace cudiag
