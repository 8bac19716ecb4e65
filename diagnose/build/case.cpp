#include "diagnose/build/case.h"

#include <algorithm>
#include <filesystem>
#include <regex>
#include <set>

#include "diagnose/build/words.h"
#include "diagnose/loader/surroundings.h"
#include "diagnose/packages/owner.h"

namespace cudiag {
namespace {

namespace fs = std::filesystem;

// "/x/site-packages" of "/x/site-packages/torch/include".
void add_site_of(const std::string& text, std::vector<std::string>& sites) {
    for (const char* name : {"/site-packages/", "/dist-packages/"}) {
        const auto at = text.find(name);
        const auto begin = text.find('/');
        if (at == std::string::npos || begin == std::string::npos || begin > at) {
            continue;
        }
        std::string site = text.substr(begin, at - begin) + std::string{name};
        site.pop_back();
        if (std::find(sites.begin(), sites.end(), site) == sites.end()) {
            sites.push_back(std::move(site));
        }
    }
}

bool failed_below(const Build& build, const BuildStep& step) {
    return std::any_of(build.steps.begin(), build.steps.end(), [&](const BuildStep& other) {
        return &other != &step && other.failed() && build.parent_of(other) == &step;
    });
}

// Programs that start another one only to see whether it fails: the sources of their tests.
bool is_compiler_test(const BuildStep& step) {
    // CMake's Modules/CMakeTest<LANG>Compiler.cmake: these are asked once, and the answer counts.
    static const std::regex name{R"((^|/)(testCCompiler|testCXXCompiler|main)\.(c|cxx|cu)$)"};
    return std::any_of(step.argv.begin(), step.argv.end(),
                       [](const std::string& word) { return std::regex_search(word, name); });
}

// Did whoever asked for `step` go on after a step of this kind failed? Then its failing is an
// answer, not a failure.
bool is_tolerated(const Build& build, const BuildStep& step) {
    const BuildStep* parent = build.parent_of(step);
    const auto asked_by_same = [&](const BuildStep& other) {
        return &other != &step && other.parent == step.parent && build.parent_of(other) == parent;
    };
    for (const BuildStep& failed : build.steps) {
        const bool same_kind =
            &failed == &step || (asked_by_same(failed) && failed.tool() == step.tool());
        if (!same_kind || !failed.failed() || failed.end_ns == 0) {
            continue;
        }
        const bool went_on =
            std::any_of(build.steps.begin(), build.steps.end(), [&](const BuildStep& later) {
                return asked_by_same(later) && &later != &failed && later.start_ns > failed.end_ns;
            });
        if (went_on) {
            return true;
        }
    }
    return false;
}

// These fail because a step of theirs failed; all others may have been only asking.
bool hands_failure_on(const std::string& tool) {
    static const std::set<std::string> tools{
        "nvcc",  "gcc",  "g++",   "cc",          "c++",  "clang",  "clang++", "collect2",
        "ninja", "make", "gmake", "ninja-build", "cicc", "ccache", "sccache", "lto-wrapper"};
    return tools.count(tool) != 0;
}

bool is_fatal(const BuildStep& leaf, const std::vector<const BuildStep*>& above,
              const Build& build) {
    const BuildStep* below = &leaf;
    for (const BuildStep* step : above) {
        if (!step->failed()) {
            return false;
        }
        if (!hands_failure_on(step->tool()) && !is_compiler_test(leaf) &&
            is_tolerated(build, *below)) {
            return false;
        }
        below = step;
    }
    return is_compiler_test(leaf) || !is_tolerated(build, *below);
}

}  // namespace

const Process* root_of(const Facts& facts) {
    const auto root =
        std::find_if(facts.processes.begin(), facts.processes.end(),
                     [](const Process& process) { return process.pid == process.root_pid; });
    return root == facts.processes.end() ? nullptr : &*root;
}

bool may_be_about_a_build(const Process* root) {
    if (root == nullptr || root->exceptions.empty()) {
        return true;
    }
    // What says so when a build that Python asked for has failed: subprocess, setuptools, torch,
    // DeepSpeed, and what is left of a half-made object.
    constexpr const char* kWords[] = {"uild",   "ompil",       "inja",      "nvcc",
                                      "ommand", "exit status", "xtension",  ".so",
                                      "gcc",    "g++",         "attribute", "CUDA"};
    return std::any_of(
        root->exceptions.begin(), root->exceptions.end(), [&](const PythonException& exception) {
            const std::string text = exception.type + ": " + exception.message;
            return std::any_of(std::begin(kWords), std::end(kWords), [&](const char* word) {
                return text.find(word) != std::string::npos;
            });
        });
}

std::vector<BuildCase> failed_steps(const Facts& facts) {
    std::vector<BuildCase> cases;
    const Process* root = root_of(facts);
    if (facts.root_runs || (root != nullptr && root->end != EndHow::none && !root->failed()) ||
        !may_be_about_a_build(root)) {
        return cases;
    }
    const Build& build = facts.build;
    std::vector<const BuildStep*> failed;
    for (const BuildStep& step : build.steps) {
        if (step.failed() && !failed_below(build, step)) {
            failed.push_back(&step);
        }
    }
    std::stable_sort(failed.begin(), failed.end(),
                     [](const BuildStep* a, const BuildStep* b) { return a->end_ns < b->end_ns; });
    for (const BuildStep* step : failed) {
        BuildCase c{.facts = facts, .step = *step, .above = {}, .root = root};
        constexpr std::size_t kDeepest = 64;
        for (const BuildStep* parent = build.parent_of(*step);
             parent != nullptr && c.above.size() < kDeepest; parent = build.parent_of(*parent)) {
            c.above.push_back(parent);
        }
        if (is_fatal(*step, c.above, build)) {
            cases.push_back(std::move(c));
        }
    }
    return cases;
}

std::string BuildCase::variable(const std::string& name) const {
    const BuildStep& top = above.empty() ? step : *above.back();
    if (const auto found = top.environment.find(name); found != top.environment.end()) {
        return found->second;
    }
    if (top.environment.empty() && root != nullptr) {
        const auto found = root->environment.find(name);
        return found == root->environment.end() ? "" : found->second;
    }
    return {};
}

const BuildStep* BuildCase::above_named(std::initializer_list<std::string_view> tools) const {
    for (const BuildStep* candidate : above) {
        if (std::find(tools.begin(), tools.end(), candidate->tool()) != tools.end()) {
            return candidate;
        }
    }
    return nullptr;
}

const BuildStep* BuildCase::nvcc() const {
    return step.tool() == "nvcc" ? &step : above_named({"nvcc"});
}

std::string BuildCase::source() const {
    const std::vector<std::string_view> sources{".cu", ".cpp", ".cc", ".cxx", ".c", ".C"};
    // nvcc's and the driver's own arguments name the user's file; their children's may be made-up
    // ones.
    for (auto it = above.rbegin(); it != above.rend(); ++it) {
        const std::string tool = (*it)->tool();
        if (tool == "nvcc" || tool == "gcc" || tool == "g++" || tool == "cc" || tool == "c++" ||
            tool == "clang" || tool == "clang++" || tool == "ccache") {
            if (const auto file = argument_ending((*it)->argv, sources)) {
                return absolute_path(*file, (*it)->cwd);
            }
        }
    }
    const auto file = argument_ending(step.argv, sources);
    return file ? absolute_path(*file, step.cwd) : "";
}

std::optional<Toolkit> BuildCase::toolkit() const {
    if (const BuildStep* compiler = nvcc()) {
        // As it was called: the directory above it is what a build means by CUDA_HOME.
        const std::string& called = compiler->argv.empty() ? compiler->exe : compiler->argv.front();
        Toolkit toolkit = toolkit_of_nvcc(called.find('/') == std::string::npos
                                              ? compiler->exe
                                              : absolute_path(called, compiler->cwd));
        return toolkit.release.empty() ? toolkit_of_nvcc(compiler->exe) : toolkit;
    }
    for (const char* name : {"CUDA_HOME", "CUDA_PATH"}) {
        if (const std::string home = variable(name); !home.empty()) {
            return toolkit_at(home);
        }
    }
    return std::nullopt;
}

std::vector<std::string> BuildCase::site_packages() const {
    std::vector<std::string> sites;
    if (root != nullptr) {
        static const std::vector<Module> none;
        const auto& modules = root->snapshots.empty() ? none : root->snapshots.rbegin()->second;
        sites = site_packages_dirs(*root, modules);
    }
    for (const BuildStep& each : facts.build.steps) {
        for (const std::string& word : each.argv) {
            add_site_of(word, sites);
        }
        for (const auto& [name, value] : each.environment) {
            add_site_of(value, sites);
        }
    }
    return sites;
}

std::vector<Toolkit> BuildCase::toolkits() const {
    return toolkits_near(variable("PATH"), site_packages(), variable("CONDA_PREFIX"));
}

std::optional<Package> BuildCase::installed(const std::string& package) const {
    for (const std::string& site : site_packages()) {
        if (auto found = pip_package(site, package)) {
            return found;
        }
    }
    return std::nullopt;
}

std::string BuildCase::torch_version() const {
    // The torch whose headers are used, else the one that is installed for the program.
    const auto torch = installed("torch");
    return torch ? torch->version : "";
}

std::string BuildCase::python() const {
    if (root != nullptr && is_python(*root)) {
        return python_command(*root);
    }
    const std::vector<std::string> sites = site_packages();
    for (const std::string& site : sites) {
        // "/venv/lib/python3.11/site-packages" -> "/venv/bin/python"
        const fs::path python =
            fs::path{site}.parent_path().parent_path().parent_path() / "bin/python";
        std::error_code error;
        if (fs::exists(python, error)) {
            return shell_quoted(python.string());
        }
    }
    return "python3";
}

Finding begin_finding(const BuildCase& c, const char* slug, std::string title) {
    Finding finding;
    finding.slug = slug;
    finding.title = std::move(title);
    finding.severity = Severity::error;
    finding.time_ns = c.step.end_ns;
    finding.pid = c.step.pid;
    finding.tid = c.step.pid;
    finding.argv = c.step.argv;
    if (c.root != nullptr && !c.root->exceptions.empty()) {
        finding.python = c.root->exceptions.front().python;
    }
    finding.evidence["failed"] = c.step.tool();
    auto chain = nlohmann::ordered_json::array();
    for (const BuildStep* above : c.above) {
        chain.push_back(above->tool());
    }
    finding.evidence["started_by"] = std::move(chain);
    return finding;
}

std::size_t running_at(const Build& build, const std::string& tool, std::uint64_t time_ns) {
    return static_cast<std::size_t>(
        std::count_if(build.steps.begin(), build.steps.end(), [&](const BuildStep& step) {
            return step.start_ns <= time_ns && (step.end_ns == 0 || step.end_ns >= time_ns) &&
                   step.tool() == tool;
        }));
}

}  // namespace cudiag
