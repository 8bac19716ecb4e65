#include <fmt/core.h>

#include <algorithm>

#include "diagnose/cuda/rules.h"
#include "diagnose/knowledge/cuda.h"
#include "diagnose/knowledge/knowledge.h"
#include "diagnose/knowledge/release_name.h"
#include "diagnose/loader/case.h"
#include "diagnose/loader/surroundings.h"
#include "diagnose/packages/owner.h"
#include "diagnose/say.h"

namespace cudiag {
namespace {

constexpr int kInsufficientDriver = 35;
constexpr int kCompatNotSupported = 804;

// Where forward compatibility stands: a newer libcuda for an older kernel module, from the package
// cuda-compat.
std::string forward_compatibility(const CudaCase& c, const std::vector<Copy>& copies) {
    if (c.compat()) {
        return say("in use: {} ({})", c.driver.path, c.rule());
    }
    for (const Copy& copy : copies) {
        if (copy.path.find("/compat/") != std::string::npos) {
            return say("there, not in use: {}", copy.path);
        }
    }
    return say("none seen");
}

// The newest torch of PyPI that is built for the driver's own CUDA or an older one of its major; if
// there is none, for the oldest of its major, which such a driver runs as well. nullptr if none is
// known.
const TorchRelease* torch_for(const std::string& driver_cuda) {
    const TorchRelease* best = nullptr;
    const auto better = [&](const TorchRelease& one) {
        const bool fits = compare_versions(one.cuda, driver_cuda) <= 0;
        const bool best_fits = compare_versions(best->cuda, driver_cuda) <= 0;
        if (fits != best_fits) {
            return fits;
        }
        const int by_cuda = fits ? 0 : compare_versions(best->cuda, one.cuda);
        return by_cuda != 0 ? by_cuda > 0 : compare_versions(one.version, best->version) > 0;
    };
    for (const TorchRelease* release : all_torch_releases()) {
        if (cuda_major_of(release->cuda) == cuda_major_of(driver_cuda) &&
            (best == nullptr || better(*release))) {
            best = release;
        }
    }
    return best;
}

void propose_torch(const CudaCase& c, Finding& finding) {
    const std::string cuda = c.driver_cuda();
    const TorchRelease* torch = c.torch.empty() || cuda.empty() ? nullptr : torch_for(cuda);
    if (torch == nullptr) {
        return;
    }
    std::string wanted = fmt::format("'torch=={}.*'", torch->version);
    const std::vector<Module> none;
    const std::vector<Module>& modules =
        c.process.snapshots.empty() ? none : c.process.snapshots.rbegin()->second;
    for (const std::string& site : site_packages_dirs(c.process, modules)) {
        if (!torch->torchvision.empty() && pip_package(site, "torchvision")) {
            wanted += fmt::format(" 'torchvision=={}'", torch->torchvision);
            break;
        }
    }
    finding.fixes.push_back(
        {say("or, with the driver as it is, take a torch for a CUDA that it runs: torch {} "
             "is built for CUDA {} (extensions are then to be built anew)",
             torch->version, torch->cuda),
         fmt::format("{} -m pip install {}", python_command(c.process), wanted), false});
    finding.limits +=
        std::string{finding.limits.empty() ? "" : "; "} +
        say("whether that torch has a wheel for this Python, and whether other packages "
            "accept it, is not checked");
}

void propose_driver(const CudaCase& c, const std::string& minimum, Finding& finding) {
    const std::string branch = minimum.substr(0, minimum.find('.'));
    if (c.machine.wsl) {
        finding.fixes.push_back(
            {say("WSL: update the NVIDIA driver of Windows, to branch {} or newer; nothing "
                 "is to be installed inside",
                 branch),
             "", false});
    } else if (!c.machine.container.empty()) {
        finding.fixes.push_back(
            {say("upgrade the driver on the host, to branch {} or newer: the container "
                 "uses the host's",
                 branch),
             "", false});
    } else {
        finding.fixes.push_back({say("upgrade the NVIDIA driver to branch {} or newer, by the "
                                     "distribution's own package, then reboot",
                                     branch),
                                 c.machine.distribution == "ubuntu"
                                     ? fmt::format("sudo apt install nvidia-driver-{}", branch)
                                     : std::string{},
                                 false});
    }
}

std::string runtime_words(const CudaCase& c) {
    const std::string runtime = c.runtime_cuda.empty() ? say("this CUDA runtime")
                                                       : say("the CUDA {} runtime", c.runtime_cuda);
    return c.torch.empty() ? runtime : say("{} of torch {}", runtime, c.torch);
}

std::string driver_words(const CudaCase& c) {
    const std::string release =
        c.driver_release.empty() || c.compat() ? c.module_release : c.driver_release;
    const std::string cuda = c.driver_cuda();
    return say("the NVIDIA driver{}{}", release.empty() ? "" : " " + release,
               cuda.empty() ? "" : say(" (CUDA {})", cuda));
}

Finding too_old(const CudaCase& c, const DriverNeed* need) {
    Finding finding = begin_finding(
        c, "cuda-driver-too-old",
        say("{} is too old for {}{}", driver_words(c), runtime_words(c),
            need == nullptr ? "" : say(": it needs driver {} or newer", need->minimum)));
    const bool contradicted = need != nullptr &&
                              cuda_major_of(c.driver_cuda()) >= cuda_major_of(c.runtime_cuda) &&
                              cuda_major_of(c.driver_cuda()) != 0;
    if (contradicted) {
        finding.confidence = Confidence::likely;
        finding.title = say("{} is called too old for {}, and by what is known it is not",
                            driver_words(c), runtime_words(c));
        finding.limits +=
            say("another runtime in the process may be the one that refuses: it is not "
                "known which");
        return finding;
    }
    if (need != nullptr) {
        propose_driver(c, need->minimum, finding);
    }
    propose_torch(c, finding);
    return finding;
}

Finding compat_refused(const CudaCase& c, const DriverNeed* need) {
    Finding finding = begin_finding(
        c, "cuda-driver-too-old",
        c.compat() ? say("the forward-compatibility libcuda in {} is not made for this GPU "
                         "(804)",
                         c.directory())
                   : say("the libcuda in use is of another driver than the kernel module, "
                         "by forward compatibility, and not made for this GPU (804)"));
    const bool module_will_do = need != nullptr && !c.module_release.empty() &&
                                compare_versions(c.module_release, need->minimum) >= 0;
    const std::string then = module_will_do ? say(": the driver itself, {}, is new enough for {}",
                                                  c.module_release, runtime_words(c))
                                            : std::string{};
    if (c.from_variable()) {
        finding.fixes.push_back({say("take {} out of LD_LIBRARY_PATH{}", c.directory(), then),
                                 without_library_path(c, c.directory()), false});
    } else if (c.compat()) {
        const auto owner = owner_of(c.driver.path);
        const bool debian = owner && owner->manager == PackageManager::dpkg;
        finding.fixes.push_back({say("remove the forward-compatibility package{}", then),
                                 debian ? "sudo apt-get remove " + owner->name : "", false});
    }
    if (!module_will_do && need != nullptr) {
        propose_driver(c, need->minimum, finding);
    }
    finding.limits += std::string{finding.limits.empty() ? "" : "; "} +
                      say("forward compatibility is for data-centre GPUs and some others; which "
                          "GPU this is was not "
                          "asked");
    if (c.module_release.empty()) {
        finding.limits +=
            say(". The release of the kernel module is not seen here: whether the driver "
                "itself is new enough is not known");
    }
    return finding;
}

}  // namespace

std::optional<Finding> cuda_driver_too_old(const CudaCase& c) {
    if (c.code != kInsufficientDriver && c.code != kCompatNotSupported) {
        return std::nullopt;
    }
    const DriverNeed* need = driver_need(c.runtime_cuda);
    Finding finding = c.code == kCompatNotSupported ? compat_refused(c, need) : too_old(c, need);
    const std::vector<Module> none;
    const std::vector<Module>& modules =
        c.process.snapshots.empty() ? none : c.process.snapshots.rbegin()->second;
    add_driver(c, finding.evidence);
    add_runtime(c, finding.evidence);
    finding.evidence["minimum"] = need == nullptr ? say("not known") : need->minimum;
    finding.evidence["minimum_from"] = need == nullptr ? "" : need->source;
    finding.evidence["forward_compat"] =
        forward_compatibility(c, find_copies("libcuda.so.1", c.process, modules, c.state.config));
    if (need != nullptr && !need->checked) {
        finding.limits +=
            std::string{finding.limits.empty() ? "" : "; "} +
            say("of the minimum the branch was checked against NVIDIA's table, the last numbers "
                "were not");
    }
    return finding;
}

}  // namespace cudiag
