// build-link-failed: ld looked for -lX in every directory and found neither libX.so nor libX.a.
#include <fmt/core.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <set>

#include "diagnose/build/fixes.h"
#include "diagnose/build/rules.h"
#include "diagnose/build/words.h"
#include "diagnose/elf/elf_file.h"
#include "diagnose/knowledge/toolchain.h"
#include "diagnose/loader/surroundings.h"
#include "diagnose/say.h"

namespace cudiag {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

bool is_linker(const std::string& tool) {
    return tool == "ld" || tool == "ld.bfd" || tool == "ld.gold" || tool == "gold" ||
           tool == "lld" || tool == "ld.lld" || tool == "mold";
}

// "cudart" for "libcudart.so" and "libcudart.a".
std::string name_of_library(const std::string& file) {
    const auto so = file.rfind(".so");
    const auto end = so != std::string::npos && so + 3 == file.size() ? so : file.rfind(".a");
    const bool fits = file.rfind("lib", 0) == 0 && end != std::string::npos && end > 3;
    return fits ? file.substr(3, end - 3) : "";
}

struct MissingLibrary {
    std::string name;
    std::vector<std::string> searched;  // directories, in order
};

// Those that were asked for with -l, in the order of the command line, and never opened.
std::vector<MissingLibrary> missing_libraries(const BuildStep& ld) {
    std::map<std::string, std::vector<std::string>> misses;
    std::set<std::string> found;
    for (const OpenedFile& open : ld.opens) {
        const std::string name = name_of_library(base_name(open.path));
        if (name.empty()) {
            continue;
        }
        if (open.opened) {
            found.insert(name);
            continue;
        }
        const std::string directory =
            absolute_path(directory_of(open.path).empty() ? "." : directory_of(open.path), ld.cwd);
        std::vector<std::string>& directories = misses[name];
        if (std::find(directories.begin(), directories.end(), directory) == directories.end()) {
            directories.push_back(directory);
        }
    }
    std::vector<MissingLibrary> missing;
    std::set<std::string> told;
    for (const std::string& name : values_of(ld.argv, "-l")) {
        if (const auto miss = misses.find(name);
            miss != misses.end() && found.count(name) == 0 && told.insert(name).second) {
            missing.push_back({name, miss->second});
        }
    }
    return missing;
}

std::vector<std::string> library_directories(const BuildCase& c,
                                             const std::vector<std::string>& searched) {
    std::vector<std::string> directories = searched;
    const auto add_toolkit = [&](const std::string& home) {
        for (const char* below :
             {"/lib64", "/lib", "/targets/x86_64-linux/lib", "/targets/sbsa-linux/lib",
              "/targets/aarch64-linux/lib", "/lib64/stubs", "/lib/stubs"}) {
            directories.push_back(home + below);
        }
    };
    if (const auto toolkit = c.toolkit()) {
        add_toolkit(toolkit->home);
    }
    for (const char* name : {"CUDA_HOME", "CUDA_PATH", "CONDA_PREFIX"}) {
        if (const std::string home = c.variable(name); !home.empty()) {
            add_toolkit(home);
        }
    }
    for (const Toolkit& toolkit : c.toolkits()) {
        add_toolkit(toolkit.home);
    }
    for (const std::string& site : c.site_packages()) {
        std::error_code error;
        for (const auto& entry : fs::directory_iterator(site + "/nvidia", error)) {
            directories.push_back(entry.path().string() + "/lib");
        }
    }
    return directories;
}

// Files of the library that are there: libX.so, libX.so.N, libX.a.
std::vector<std::string> present_files(const std::string& name,
                                       const std::vector<std::string>& directories) {
    std::vector<std::string> files;
    std::set<std::string> seen;
    for (const std::string& directory : directories) {
        std::error_code error;
        std::vector<std::string> here;
        for (const auto& entry : fs::directory_iterator(directory, error)) {
            const std::string file = entry.path().filename().string();
            const bool fits =
                file == "lib" + name + ".a" || file.rfind("lib" + name + ".so", 0) == 0;
            const fs::path real = fs::canonical(entry.path(), error);  // a link may lead nowhere
            if (fits && !error && seen.insert(real.string() + file).second) {
                here.push_back(entry.path().string());
            }
        }
        std::sort(here.begin(), here.end());
        files.insert(files.end(), here.begin(), here.end());
    }
    return files;
}

bool is_link_name(const std::string& file, const std::string& name) {
    return base_name(file) == "lib" + name + ".so" || base_name(file) == "lib" + name + ".a";
}

std::string output_of(const BuildCase& c) {
    for (const BuildStep* step : {&c.step, c.above.empty() ? &c.step : c.above.front()}) {
        if (const auto outputs = values_of(step->argv, "-o"); !outputs.empty()) {
            return absolute_path(outputs.back(), step->cwd);
        }
    }
    return {};
}

std::string why_searched(const BuildCase& c, const std::string& directory) {
    for (const std::string& given : values_of(c.step.argv, "-L")) {
        if (absolute_path(given, c.step.cwd) == directory) {
            for (const std::string& entry : split(c.variable("LIBRARY_PATH"), ':')) {
                if (absolute_path(entry, c.step.cwd) == directory) {
                    return "LIBRARY_PATH";
                }
            }
            return say("-L of the command line");
        }
    }
    return say("built into the linker");
}

// A file that ld would take, elsewhere: in a directory of the same toolkit that was not searched.
Fix fix_by_library_path(const std::string& file, const BuildCase& c) {
    const std::string directory = directory_of(file);
    const std::string before = c.variable("LIBRARY_PATH");
    return {.text = say("the library is there: let the linker look in {}", directory),
            .command = fmt::format("export LIBRARY_PATH={}{}", shell_quoted(directory),
                                   before.empty() ? "" : ":\"$LIBRARY_PATH\"")};
}

// The versioned file alone is there, as wheels have it: the link that ld looks for.
std::vector<Fix> fixes_by_link(const BuildCase& c, const MissingLibrary& missing,
                               const std::string& file) {
    const std::string directory = directory_of(file);
    const bool searched = std::find(missing.searched.begin(), missing.searched.end(), directory) !=
                          missing.searched.end();
    std::string command = fmt::format("ln -s {} {}", shell_quoted(base_name(file)),
                                      shell_quoted(directory + "/lib" + missing.name + ".so"));
    if (!searched) {
        command += " && " + fix_by_library_path(file, c).command;
    }
    return {{.text = say("{} is there, but not the name that the linker looks for: make it{}",
                         base_name(file), searched ? "" : say(", and let the linker look there")),
             .command = std::move(command)}};
}

std::vector<Fix> fixes_for(const BuildCase& c, const MissingLibrary& missing,
                           const std::vector<std::string>& present, const std::string& release) {
    std::vector<Fix> fixes;
    const Linkable* known = linkable(missing.name);
    const auto usable = std::find_if(present.begin(), present.end(), [&](const std::string& file) {
        const bool stub = file.find("/stubs/") != std::string::npos;
        return is_link_name(file, missing.name) && (!stub || (known != nullptr && known->stub));
    });
    if (usable != present.end()) {
        fixes.push_back(fix_by_library_path(*usable, c));
        return fixes;
    }
    const auto versioned =
        std::find_if(present.begin(), present.end(), [&](const std::string& file) {
            return base_name(file).rfind("lib" + missing.name + ".so.", 0) == 0;
        });
    const bool of_wheels =
        versioned != present.end() && versioned->find("-packages/") != std::string::npos;
    std::vector<Fix> packages;
    if (known != nullptr) {
        packages = fixes_by_packages(c, {known->owner}, release);
        // A wheel of CUDA never holds the name that a linker looks for.
        packages.erase(std::remove_if(packages.begin(), packages.end(),
                                      [](const Fix& fix) {
                                          return fix.command.find(" pip install ") !=
                                                 std::string::npos;
                                      }),
                       packages.end());
    }
    if (versioned != present.end()) {
        const std::vector<Fix> links = fixes_by_link(c, missing, *versioned);
        fixes.insert(fixes.end(), links.begin(), links.end());
    }
    fixes.insert(of_wheels ? fixes.end() : fixes.begin(), packages.begin(), packages.end());
    return fixes;
}

}  // namespace

std::optional<Finding> build_link_failed(const BuildCase& c) {
    if (!is_linker(c.step.tool())) {
        return std::nullopt;
    }
    const std::vector<MissingLibrary> all = missing_libraries(c.step);
    if (all.empty()) {
        return std::nullopt;
    }
    const MissingLibrary& missing = all.front();
    const auto toolkit = c.toolkit();
    std::string release = toolkit ? toolkit->release : "";
    const std::vector<std::string> present =
        present_files(missing.name, library_directories(c, missing.searched));
    Finding finding = begin_finding(
        c, "build-link-failed",
        say("the linker finds no lib{0}.so or lib{0}.a for -l{0} in the {1} directories "
            "that it searches{2}",
            missing.name, missing.searched.size(),
            present.empty() ? "" : say("; {} is there", present.front())));
    Json& evidence = finding.evidence;
    evidence["library"] = missing.name;
    evidence["searched"] = Json::array();
    for (const std::string& directory : missing.searched) {
        std::error_code error;
        evidence["searched"].push_back(
            {{"dir", directory},
             {"why", why_searched(c, directory)},
             {"result", fs::exists(directory, error) ? "absent" : say("no such directory")}});
    }
    evidence["present"] = present;
    evidence["needed_by"] = output_of(c);
    std::vector<std::string> others;
    for (std::size_t i = 1; i < all.size(); ++i) {
        others.push_back(all[i].name);
    }
    evidence["also_missing"] = others;
    finding.fixes = fixes_for(c, missing, present, release);
    finding.limits =
        say("whether the program then finds the library when it is loaded is another search");
    return finding;
}

}  // namespace cudiag
