#include "diagnose/build/fixes.h"

#include <fmt/core.h>

#include <algorithm>
#include <filesystem>

#include "diagnose/build/words.h"
#include "diagnose/loader/surroundings.h"
#include "diagnose/packages/owner.h"
#include "diagnose/say.h"

namespace cudiag {
namespace {

namespace fs = std::filesystem;

// "pip", "conda", "apt": what the toolkit at hand was installed by.
std::string manager_of(const BuildCase& c) {
    const auto toolkit = c.toolkit();
    if (!toolkit) {
        return {};
    }
    if (toolkit->home.find("/site-packages/") != std::string::npos) {
        return "pip";
    }
    std::error_code error;
    if (fs::exists(toolkit->home + "/conda-meta", error)) {
        return "conda";
    }
    return toolkit->home.rfind("/usr", 0) == 0 ? "apt" : std::string{};
}

std::string dotted(std::string release) {
    std::replace(release.begin(), release.end(), '.', '-');
    return release;
}

// Where wheels put headers that no build looks at by itself: those of a toolkit that is not made of
// wheels.
std::string include_path_of_wheels(const BuildCase& c,
                                   const std::vector<const HeaderOwner*>& owners,
                                   const std::string& cuda_release) {
    const std::vector<std::string> sites = c.site_packages();
    std::string path;
    for (const HeaderOwner* owner : owners) {
        const HeaderWheel* wheel = header_wheel(*owner, cuda_release);
        if (wheel == nullptr || sites.empty()) {
            return {};
        }
        const std::string directory = sites.front() + "/" + wheel->include_directory;
        if (path.find(directory) == std::string::npos) {
            path += (path.empty() ? "" : ":") + directory;
        }
    }
    return path;
}

std::string names_of(const std::vector<Provider>& providers) {
    std::string names;
    for (const Provider& provider : providers) {
        names += (names.empty() ? "" : ", ") + provider.package;
    }
    return names;
}

}  // namespace

Fix fix_by_cuda_home(const Toolkit& toolkit) {
    return {.text = say("build with the CUDA {} toolkit at {}", toolkit.release, toolkit.home),
            .command = fmt::format("export CUDA_HOME={}", shell_quoted(toolkit.home))};
}

std::vector<Fix> fixes_by_packages(const BuildCase& c,
                                   const std::vector<const HeaderOwner*>& owners,
                                   const std::string& cuda_release) {
    std::vector<Fix> fixes;
    if (owners.empty()) {
        return fixes;
    }
    const std::string own_manager = manager_of(c);
    for (const ProviderSet& set : provider_sets(owners, cuda_release, c.torch_version())) {
        Fix fix;
        if (set.manager == "image") {
            fix.text = say("or start from an image with the development files: {}",
                           names_of(set.providers));
        } else {
            fix.command = install_command(set, c.python());
            fix.text = say("install them by {}: {}", set.manager, names_of(set.providers));
        }
        if (set.manager == "pip" && own_manager != "pip") {
            const std::string include = include_path_of_wheels(c, owners, cuda_release);
            if (include.empty()) {
                continue;
            }
            fix.command += fmt::format(" && export CPATH={}", shell_quoted(include));
            fix.text += say(", and let the compilers look there (CPATH)");
        }
        const bool first = set.manager == own_manager;
        fixes.insert(first ? fixes.begin() : fixes.end(), std::move(fix));
    }
    // Wheels for a toolkit that is none are the last resort.
    if (own_manager != "pip") {
        std::stable_partition(fixes.begin(), fixes.end(), [](const Fix& fix) {
            return fix.command.find("CPATH") == std::string::npos;
        });
    }
    return fixes;
}

namespace {

// A whole toolkit of wheels, for the environment at hand. The wheels hold no link libcudart.so, and
// their lib is no lib64, where builds look (both seen with 13.0.88): without the links every build
// ends at its last step.
Fix fix_by_wheels(const BuildCase& c, const std::string& release) {
    const std::string major = release.substr(0, release.find('.'));
    const std::string home = c.site_packages().front() + "/nvidia/cu" + major;
    return {
        .text = say("install nvcc and what it needs as wheels beside torch, with the links that "
                    "builds look for"),
        .command = fmt::format(
            "{0} -m pip install 'nvidia-cuda-nvcc=={1}.*' 'nvidia-nvvm=={1}.*' "
            "'nvidia-cuda-crt=={1}.*' 'nvidia-cuda-runtime=={1}.*' 'nvidia-cuda-cccl=={1}.*' "
            "&& ln -sfn lib {2}/lib64 && ln -sf libcudart.so.{3} {2}/lib/libcudart.so "
            "&& export CUDA_HOME={2}",
            c.python(), release, shell_quoted(home), major)};
}

}  // namespace

std::vector<Fix> fixes_by_toolkit(const BuildCase& c, const std::string& cuda_release) {
    std::vector<Fix> fixes;
    const std::string release = cuda_release.empty() ? "13.0" : cuda_release;
    const std::vector<std::string> sites = c.site_packages();
    std::error_code error;
    // Wheels of CUDA 12 and older hold no nvcc. Where torch came as wheels, so can the toolkit.
    const bool has_wheels =
        release.rfind("13.", 0) == 0 && !sites.empty() && fs::is_directory(sites.front(), error);
    const bool torch_of_wheels = has_wheels && fs::is_directory(sites.front() + "/nvidia", error);
    if (torch_of_wheels) {
        fixes.push_back(fix_by_wheels(c, release));
    }
    fixes.push_back({.text = say("install the CUDA {} toolkit (NVIDIA's apt repository)", release),
                     .command = fmt::format("apt-get install cuda-toolkit-{}", dotted(release))});
    if (has_wheels && !torch_of_wheels) {
        fixes.push_back(fix_by_wheels(c, release));
    }
    fixes.push_back({.text = say("or by conda"),
                     .command = fmt::format("conda install -c nvidia cuda-toolkit={}", release)});
    fixes.push_back(
        {.text = say("or start from an image that ends in -devel, not -runtime or -base: "
                     "nvidia/cuda:{}",
                     release),
         .command = ""});
    return fixes;
}

std::string anew(const BuildCase& c, const Package& package) {
    return fmt::format(
        "{} -m pip install --force-reinstall --no-deps --no-build-isolation "
        "--no-cache-dir '{}=={}'",
        c.python(), package.name, package.version);
}

}  // namespace cudiag
