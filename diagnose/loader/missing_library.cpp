#include <fmt/core.h>
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "diagnose/knowledge/knowledge.h"
#include "diagnose/loader/library_path.h"
#include "diagnose/loader/rules.h"
#include "diagnose/loader/symbol_owner.h"
#include "diagnose/packages/requirements.h"
#include "diagnose/say.h"

namespace cudiag {
namespace {

namespace fs = std::filesystem;

// Everything that the rule weighs, gathered once.
struct Missing {
    std::string name;       // libcudart.so.12
    std::string needed_by;  // the file that has it in DT_NEEDED; "" when it was asked for itself
    std::vector<std::string> chain;  // asked-for object … needed_by
    std::vector<SearchStep> searched;
    std::vector<Copy> copies;
    const LibraryRelease* release = nullptr;
    std::optional<Package> user;  // package of needed_by
};

Missing gather(const LoaderCase& c) {
    Missing missing;
    missing.name = c.error.subject;
    const Lookup* lookup = c.resolution.lookup_of(missing.name);
    if (lookup != nullptr) {
        missing.needed_by = lookup->requested_by;
        missing.chain = lookup->chain;
        missing.searched = lookup->steps;
    }
    missing.copies = copies_near(c, missing.name, missing.searched);
    missing.release = library_release(missing.name);
    if (!missing.needed_by.empty()) {
        missing.user = owner_of(missing.needed_by);
    }
    return missing;
}

// torch's own libraries come into a process by `import torch`, which finds them by torch's own
// path.
bool belongs_to_torch(const std::string& name) {
    const SymbolOwner* torch = symbol_owner("c10::Error");
    return torch != nullptr &&
           std::count(torch->libraries.begin(), torch->libraries.end(), name) > 0;
}

std::optional<Package> installed_torch(const LoaderCase& c) {
    for (const std::string& site : site_packages_dirs(c.process, c.modules)) {
        if (auto torch = pip_package(site, "torch")) {
            return torch;
        }
    }
    return std::nullopt;
}

int cuda_major_of(const Package& torch) {
    const auto local = torch.version.find("+cu");
    if (local != std::string::npos && local + 5 <= torch.version.size()) {
        return std::atoi(torch.version.substr(local + 3, 2).c_str());
    }
    const TorchRelease* release = torch_release(torch.version);
    return release == nullptr ? 0 : std::atoi(release->cuda.c_str());
}

// Only a process that has torch in it, or a package that is built on torch, is bound to torch's
// CUDA. 0 if it is not.
int major_by_torch(const LoaderCase& c, const ElfRead& user, const std::optional<Package>& torch) {
    const bool mapped = std::any_of(c.modules.begin(), c.modules.end(), [](const Module& module) {
        return belongs_to_torch(file_name(module.path));
    });
    const bool used = user.file && std::any_of(user.file->needed.begin(), user.file->needed.end(),
                                               belongs_to_torch);
    return torch && (mapped || used) ? cuda_major_of(*torch) : 0;
}

// The other major of the same library that is mapped or installed beside torch: bringing the
// missing one too would put two runtimes into one process.
bool clashes_with_torch(const LoaderCase& c, const Missing& missing,
                        const std::optional<Package>& torch) {
    if (missing.release == nullptr || missing.release->cuda_major == 0) {
        return false;
    }
    const int by_torch = major_by_torch(c, read_elf(missing.needed_by), torch);
    return by_torch != 0 && by_torch != missing.release->cuda_major &&
           library_family(missing.name) != "nvToolsExt";
}

// The CUDA major that a library of several majors (libcufile.so.0) is wanted for: that of what its
// user needs beside it, else torch's; 0 if neither tells.
int major_wanted(const LoaderCase& c, const Missing& missing, const std::optional<Package>& torch) {
    const ElfRead user = read_elf(missing.needed_by);
    if (user.file) {
        for (const std::string& needed : user.file->needed) {
            const LibraryRelease* release = library_release(needed);
            if (release != nullptr && release->cuda_major != 0) {
                return release->cuda_major;
            }
        }
    }
    return major_by_torch(c, user, torch);
}

std::vector<Fix> matching_build_fixes(const LoaderCase& c, const Missing& missing,
                                      const Package& torch) {
    std::vector<Fix> fixes;
    const int major = cuda_major_of(torch);
    const TorchRelease* release = torch_release(torch.version);
    std::error_code error;
    const fs::path directory = fs::path{missing.needed_by}.parent_path();
    const std::string companion =
        missing.user ? companion_release(missing.user->name, torch.version) : std::string{};
    if (!companion.empty() && release != nullptr) {
        fixes.push_back({say("the {} that belongs to torch {} (CUDA {})", missing.user->name,
                             torch.version, release->cuda),
                         pip_install(c, fmt::format("--force-reinstall --no-deps '{}=={}'",
                                                    missing.user->name, companion)),
                         false});
    } else if (fs::exists(directory / "build.ninja", error)) {
        fixes.push_back({say("throw the cached build away; it is built anew for CUDA {}", major),
                         "rm -r " + shell_quoted(directory.string()), false});
    } else if (missing.user) {
        fixes.push_back(
            {say("take the build of {} for CUDA {} (torch here is {}), or build it here",
                 missing.user->name, major, torch.version),
             pip_install(
                 c,
                 fmt::format("--force-reinstall --no-deps --no-build-isolation --no-binary {0} {0}",
                             missing.user->name)),
             false});
    } else {
        fixes.push_back({say("build {} again with CUDA {}, as torch {} is",
                             file_name(missing.needed_by), major, torch.version),
                         "", false});
    }
    return fixes;
}

// The file is on disk under its right name, and the search does not lead there.
std::vector<Fix> search_fixes(const LoaderCase& c, const Missing& missing) {
    std::vector<Fix> fixes;
    for (const Copy& copy : missing.copies) {
        if (!copy.why_not.empty() || !copy.named || fixes.size() == 2) {
            continue;
        }
        const std::string directory = fs::path{copy.path}.parent_path().string();
        const std::string value = with_directory(c.state.ld_library_path, directory);
        fixes.push_back({say("let ld.so look in {}, where it is", directory),
                         "export LD_LIBRARY_PATH=" + shell_quoted(value),
                         proved_with_library_path(c, value)});
    }
    std::stable_sort(fixes.begin(), fixes.end(),
                     [](const Fix& a, const Fix& b) { return a.proved && !b.proved; });
    return fixes;
}

bool ends_with(const std::string& text, const std::string& end) {
    return text.size() >= end.size() &&
           text.compare(text.size() - end.size(), end.size(), end) == 0;
}

// Where pip would put the library, and whether the search would then lead there.
std::string pip_command(const LoaderCase& c, const Missing& missing, const std::string& requirement,
                        const std::string& directory) {
    std::string install = pip_install(c, shell_quoted(requirement));
    const bool searched =
        std::any_of(missing.searched.begin(), missing.searched.end(), [&](const SearchStep& step) {
            return ends_with(fs::path{step.dir}.lexically_normal().string(), directory);
        });
    const auto sites = site_packages_dirs(c.process, c.modules);
    if (searched || sites.empty() || directory.empty()) {
        return install;
    }
    const std::string value =
        with_directory(c.state.ld_library_path, sites.front() + "/" + directory);
    return fmt::format("{} && export LD_LIBRARY_PATH={}", install, shell_quoted(value));
}

std::vector<Fix> package_fixes(const LoaderCase& c, const Missing& missing,
                               const std::optional<Package>& torch) {
    std::vector<Fix> fixes;
    if (missing.release == nullptr) {
        return fixes;
    }
    const bool conda = c.process.environment.count("CONDA_PREFIX") > 0;
    const std::vector<int>& majors = missing.release->cuda_majors;
    const int major = majors.size() > 1 ? major_wanted(c, missing, torch) : 0;
    const bool one_of_them = std::count(majors.begin(), majors.end(), major) > 0;
    for (const Provider& provider : missing.release->providers) {
        if (one_of_them && provider.cuda_major != 0 && provider.cuda_major != major) {
            continue;
        }
        Fix fix;
        if (provider.manager == "pip") {
            const auto wanted =
                missing.user ? requirement_on(*missing.user, provider.package) : std::nullopt;
            const std::string spec = wanted && !wanted->spec.empty() ? wanted->spec : provider.spec;
            fix = {wanted ? say("{} {} requires {}{}", missing.user->name, missing.user->version,
                                provider.package, wanted->spec)
                          : say("{} brings {}", provider.package, missing.name),
                   pip_command(c, missing, provider.package + spec, provider.directory), false};
        } else if (provider.manager == "conda") {
            if (!conda) {
                continue;
            }
            fix = {say("conda: {}", provider.package),
                   fmt::format("conda install -c nvidia -c conda-forge {}",
                               shell_quoted(provider.package + provider.spec)),
                   false};
        } else if (provider.manager == "apt") {
            fix = {say("NVIDIA's apt repository: {}", provider.package),
                   fmt::format("sudo apt install {}{}", provider.package, provider.spec), false};
        } else {
            fix = {say("or an image that has it: {}{}", provider.package, provider.spec), "",
                   false};
        }
        if (!provider.note.empty()) {
            fix.text += say(" ({})", say_known(provider.note));
        }
        const bool known = std::any_of(fixes.begin(), fixes.end(), [&](const Fix& other) {
            return other.command == fix.command && other.text == fix.text;
        });
        if (!known) {
            fixes.push_back(std::move(fix));
        }
    }
    // A process that is Python takes the wheel; another one takes the system's package.
    if (!is_python(c.process) && !c.process.exe.empty()) {
        std::stable_partition(fixes.begin(), fixes.end(),
                              [](const Fix& fix) { return fix.command.rfind("sudo apt", 0) == 0; });
    }
    return fixes;
}

void add_torch_order(const LoaderCase& c, const Missing& missing,
                     const std::optional<Package>& torch, std::vector<Fix>& fixes) {
    const bool mapped = std::any_of(c.modules.begin(), c.modules.end(), [](const Module& module) {
        return belongs_to_torch(file_name(module.path));
    });
    if (mapped || !torch) {
        return;
    }
    if (belongs_to_torch(missing.name)) {
        fixes.insert(fixes.begin(),
                     {say("import torch first: {} comes into the process with it", missing.name),
                      "import torch", false});
    }
}

nlohmann::ordered_json packages_json(const LibraryRelease* release) {
    auto list = nlohmann::ordered_json::array();
    if (release != nullptr) {
        for (const Provider& provider : release->providers) {
            list.push_back(
                {{"manager", provider.manager}, {"package", provider.package + provider.spec}});
        }
    }
    return list;
}

std::string title_of(const Missing& missing) {
    const auto usable =
        std::find_if(missing.copies.begin(), missing.copies.end(),
                     [](const Copy& copy) { return copy.why_not.empty() && copy.named; });
    const std::string by = missing.needed_by.empty()
                               ? std::string{}
                               : say(", needed by {},", file_name(missing.needed_by));
    if (usable != missing.copies.end()) {
        return say("{}{} is on this machine ({}), but in no directory searched", missing.name, by,
                   usable->path);
    }
    return say("{}{} is in no directory searched", missing.name, by);
}

}  // namespace

std::optional<Finding> loader_missing_library(const LoaderCase& c) {
    if (c.error.form != ErrorForm::missing_file) {
        return std::nullopt;
    }
    const Missing missing = gather(c);
    const std::optional<Package> torch = installed_torch(c);
    Finding finding = begin_finding(c, "loader-missing-library", title_of(missing));
    finding.evidence["library"] = missing.name;
    finding.evidence["needed_by"] = missing.needed_by;
    finding.evidence["chain"] = missing.chain;
    finding.evidence["searched"] = searched_json(missing.searched);
    finding.evidence["near_misses"] = copies_json(missing.copies);
    finding.evidence["packages"] = packages_json(missing.release);
    if (missing.user) {
        finding.evidence["needed_by_package"] =
            say("{} {} ({})", missing.user->name, missing.user->version,
                name_of(missing.user->manager));
    }
    if (missing.release != nullptr) {
        finding.evidence["ships_with"] = missing.release->cuda.empty()
                                             ? say("no CUDA release in particular")
                                             : "CUDA " + missing.release->cuda;
    }
    if (torch) {
        finding.evidence["torch"] = torch->version;
    }
    if (clashes_with_torch(c, missing, torch)) {
        finding.title =
            say("{} was built for CUDA {}, and torch {} is built for CUDA {}: {} is not here",
                missing.user
                    ? missing.user->name + " " + missing.user->version
                    : file_name(missing.needed_by.empty() ? c.failure.asked : missing.needed_by),
                missing.release->cuda_major, torch->version, cuda_major_of(*torch), missing.name);
        finding.fixes = matching_build_fixes(c, missing, *torch);
        finding.limits = say(
            "installing {} beside torch's own would let it load, and put two CUDA runtimes into "
            "one "
            "process: not proposed",
            missing.name);
        return finding;
    }
    finding.fixes = search_fixes(c, missing);
    if (finding.fixes.empty()) {
        finding.fixes = package_fixes(c, missing, torch);
    }
    add_torch_order(c, missing, torch, finding.fixes);
    const bool model_disagrees =
        c.resolution.first_missing() == nullptr && !c.resolution.lookups.empty();
    finding.limits = model_disagrees ? say("the library can be found now: it came, or the file "
                                           "system changed, after the failure")
                     : missing.release == nullptr
                         ? say("{} is no library that cudiag knows a package for", missing.name)
                         : say("copies were looked for in this process's own surroundings "
                               "(site-packages, conda, "
                               "toolkits, "
                               "ld.so.cache), not on the whole disk");
    return finding;
}

}  // namespace cudiag
