#include "diagnose/loader/case.h"

#include <fmt/core.h>

#include <algorithm>
#include <filesystem>

#include "diagnose/loader/library_path.h"
#include "diagnose/say.h"

namespace cudiag {
namespace {

namespace fs = std::filesystem;

std::string soname_of(const std::string& path) {
    const ElfRead read = read_elf(path);
    return read.file && !read.file->soname.empty() ? read.file->soname : file_name(path);
}

const Module* mapped_as(const std::vector<Module>& modules, const std::string& soname) {
    for (const Module& module : modules) {
        if (!module.path.empty() && module.path.front() == '/' &&
            (file_name(module.path) == soname || soname_of(module.path) == soname)) {
            return &module;
        }
    }
    return nullptr;
}

// The first object of the link map that needs `soname`: ld.so searched on its behalf.
std::string first_that_needs(const std::vector<Module>& modules, const std::string& soname) {
    for (const Module& module : modules) {
        const ElfRead read = read_elf(module.path);
        if (read.file &&
            std::count(read.file->needed.begin(), read.file->needed.end(), soname) > 0) {
            return module.path;
        }
    }
    return {};
}

// The file that matched in a step.
std::string step_file(const SearchStep& step) {
    if (!step.matched) {
        return {};
    }
    return step.tried.empty() ? step.dir : step.tried.back();
}

// Mapped files that the new value would not have chosen: those found through an entry that is gone,
// and those that a new entry in front holds another copy of.
std::vector<std::string> displaced(const LoaderCase& c, const std::string& value) {
    const auto before = library_path_entries(c.state.ld_library_path);
    const auto after = library_path_entries(value);
    const auto listed = [](const std::vector<std::string>& list, const std::string& directory) {
        return std::any_of(list.begin(), list.end(), [&](const std::string& entry) {
            return same_directory(entry, directory);
        });
    };
    std::vector<std::string> gone;
    for (const Module& module : c.modules) {
        const std::string directory = fs::path{module.path}.parent_path().string();
        const bool entry_gone = listed(before, directory) && !listed(after, directory);
        bool another_first = false;
        for (const std::string& entry : after) {
            if (same_directory(entry, directory)) {
                break;
            }
            std::error_code error;
            another_first |= !listed(before, entry) &&
                             fs::exists(fs::path{entry} / file_name(module.path), error);
        }
        if (entry_gone || another_first) {
            gone.push_back(module.path);
        }
    }
    return gone;
}

Fix library_path_fix(const LoaderCase& c, const std::string& value, std::string text) {
    Fix fix;
    fix.text = std::move(text);
    fix.command = value.empty() ? "unset LD_LIBRARY_PATH"
                                : fmt::format("export LD_LIBRARY_PATH={}", shell_quoted(value));
    fix.proved = proved_with_library_path(c, value);
    return fix;
}

}  // namespace

std::string file_name(const std::string& path) {
    const auto slash = path.rfind('/');
    return slash == std::string::npos ? path : path.substr(slash + 1);
}

LoadState load_state_of(const Process& process, const std::vector<Module>& modules) {
    LoadState state;
    const ElfRead exe = read_elf(process.exe);
    state.config = exe.file && !exe.file->interpreter.empty()
                       ? loader_config_for(exe.file->interpreter)
                       : host_loader_config();
    state.modules = modules;
    state.executable = process.exe;
    state.cwd = process.cwd;
    const auto path = process.environment.find("LD_LIBRARY_PATH");
    state.ld_library_path = path == process.environment.end() ? "" : path->second;
    return state;
}

LoaderCase make_case(const Process& process, const LoadFailure& failure, const Machine& machine) {
    const std::vector<Module>& modules = process.modules_at(failure.snapshot);
    LoaderCase c{process,
                 failure,
                 machine,
                 modules,
                 parse_loader_error(failure.error),
                 load_state_of(process, modules),
                 {}};
    if (!failure.is_lookup && !failure.asked.empty()) {
        c.resolution = resolve_dlopen(c.state, failure.asked, failure.caller);
    }
    return c;
}

std::string asked_file(const LoaderCase& c) {
    if (!c.resolution.lookups.empty() && !c.resolution.lookups.front().found.empty()) {
        return c.resolution.lookups.front().found;
    }
    return c.failure.asked.find('/') == std::string::npos ? std::string{} : c.failure.asked;
}

Finding begin_finding(const LoaderCase& c, const char* slug, std::string title) {
    Finding finding;
    finding.slug = slug;
    finding.title = std::move(title);
    // A program that got on without the library and ended well has a weakness, not a failure.
    const bool ended_well = c.process.end != EndHow::none && !c.process.failed();
    finding.severity = ended_well ? Severity::warning : Severity::error;
    finding.time_ns = c.failure.time_ns;
    finding.pid = c.process.pid;
    finding.tid = c.failure.tid;
    finding.argv = c.process.argv;
    finding.python = c.failure.python;
    if (!c.failure.caller.empty()) {
        finding.native.push_back({c.failure.caller, c.failure.caller_offset});
    }
    finding.evidence["error"] = c.failure.error;
    finding.evidence["asked"] = c.failure.asked;
    return finding;
}

Source source_of(const LoaderCase& c, const std::string& soname, const std::string& needed_by) {
    Source source;
    source.brought_by = needed_by;
    if (const Module* module = mapped_as(c.modules, soname)) {
        source.path = module->path;
        source.mapped = true;
        if (const std::string first = first_that_needs(c.modules, soname); !first.empty()) {
            source.brought_by = first;
        }
    }
    LoadState fresh = c.state;
    fresh.modules.clear();
    std::vector<std::string> loaders{source.brought_by};
    if (source.brought_by != c.process.exe) {
        loaders.push_back(c.process.exe);
    }
    // The asked-for object is loaded on the caller's behalf, but DT_RPATH is inherited along NEEDED
    // only, and the lookup of the resolution knows that chain.
    if (const Lookup* known = c.resolution.lookup_of(soname);
        known != nullptr && !known->already_loaded) {
        source.searched = known->steps;
        if (source.path.empty()) {
            source.path = known->found;
        }
    } else {
        source.searched = resolve_needed(fresh, soname, loaders).steps;
    }
    for (const SearchStep& step : source.searched) {
        if (step.matched) {
            source.step = step;
        }
    }
    if (source.mapped && source.step) {
        std::error_code error;
        const bool agrees = !step_file(*source.step).empty() &&
                            fs::equivalent(step_file(*source.step), source.path, error);
        if (!agrees) {
            source.step.reset();  // loaded by path or by another's rule: better unsaid than wrong
        }
    }
    return source;
}

std::vector<Copy> copies_near(const LoaderCase& c, const std::string& soname,
                              const std::vector<SearchStep>& searched) {
    std::vector<std::string> directories;
    for (const SearchStep& step : searched) {
        if (step.rule != Rule::cache && step.rule != Rule::already_loaded) {
            directories.push_back(step.dir);
        }
    }
    return find_copies(soname, c.process, c.modules, c.state.config, directories);
}

nlohmann::ordered_json searched_json(const std::vector<SearchStep>& steps) {
    auto list = nlohmann::ordered_json::array();
    for (const SearchStep& step : steps) {
        nlohmann::ordered_json entry{
            {"dir", step.dir}, {"why", why(step)}, {"result", step.result}};
        if (!step.raw.empty() && step.raw != step.dir) {
            entry["written"] = step.raw;
        }
        list.push_back(std::move(entry));
    }
    return list;
}

nlohmann::ordered_json copies_json(const std::vector<Copy>& copies, std::size_t most) {
    auto list = nlohmann::ordered_json::array();
    for (const Copy& copy : copies) {
        if (list.size() == most) {
            break;
        }
        list.push_back(
            {{"path", copy.path},
             {"soname", copy.soname},
             {"version", copy.version},
             {"substitute", copy.why_not.empty()},
             {"why", copy.why_not.empty() ? say("same SONAME and machine") : copy.why_not}});
    }
    return list;
}

bool proved_with_library_path(const LoaderCase& c, const std::string& value) {
    LoadState changed = c.state;
    changed.ld_library_path = value;
    const std::vector<std::string> gone = displaced(c, value);
    changed.modules.erase(std::remove_if(changed.modules.begin(), changed.modules.end(),
                                         [&](const Module& module) {
                                             return std::count(gone.begin(), gone.end(),
                                                               module.path) > 0;
                                         }),
                          changed.modules.end());
    const Resolution resolution = resolve_dlopen(changed, c.failure.asked, c.failure.caller);
    if (resolution.lookups.empty() || resolution.first_missing() != nullptr) {
        return false;
    }
    const std::string file = resolution.lookups.front().found;
    DryRunChange now;
    now.ld_library_path = c.state.ld_library_path;
    DryRunChange then;
    then.ld_library_path = value;
    then.drop_mapped = gone;
    const DryRun after = dry_run(c.state, file, then);
    if (c.failure.asked.find('/') == std::string::npos && asked_file(c).empty()) {
        // The name itself was nowhere, so there is no "before" to trace: the model found it, and
        // ld.so must map it whole.
        return after.ran && after.missing.empty() && after.version_errors.empty() &&
               after.failure.empty();
    }
    return cures(dry_run(c.state, file, now), after);
}

std::vector<Fix> fixes_for_wrong_copy(const LoaderCase& c, const Source& source, const Copy& good) {
    std::vector<Fix> fixes;
    const std::string good_directory = fs::path{good.path}.parent_path().string();
    if (source.step && source.step->rule == Rule::ld_library_path) {
        fixes.push_back(library_path_fix(
            c, without_directory(c.state.ld_library_path, source.step->dir),
            say("take {} out of LD_LIBRARY_PATH: it hides {}", source.step->dir, good.path)));
        if (fixes.back().proved) {
            return fixes;
        }
    }
    if (good.named) {
        fixes.push_back(
            library_path_fix(c, with_directory(c.state.ld_library_path, good_directory),
                             say("let {} be found before {}", good.path,
                                 source.path.empty() ? say("the others") : source.path)));
    }
    std::stable_sort(fixes.begin(), fixes.end(),
                     [](const Fix& a, const Fix& b) { return a.proved && !b.proved; });
    return fixes;
}

std::string pip_install(const LoaderCase& c, const std::string& arguments) {
    return fmt::format("{} -m pip install {}", python_command(c.process), arguments);
}

}  // namespace cudiag
