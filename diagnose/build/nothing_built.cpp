// build-nothing-built: a program had ninja build a library, ninja ended well, and there is no
// library, since what ran built nothing: a `ninja --version` written into torch in place of `ninja
// -v`, or a script of that name.
#include <fmt/core.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "diagnose/build/rules.h"
#include "diagnose/build/words.h"
#include "diagnose/loader/error_text.h"
#include "diagnose/loader/surroundings.h"
#include "diagnose/say.h"

namespace cudiag {
namespace {

namespace fs = std::filesystem;

bool is_script(const std::string& path) {
    std::ifstream file{path};
    char start[2] = {};
    return file.read(start, 2) && start[0] == '#' && start[1] == '!';
}

// torch's cpp_extension.py, if it asks ninja for its version where it should ask it to build
// (_run_ninja_build; torch 1.0 to 2.13 have "-v" there).
std::string patched_file(const std::vector<std::string>& sites) {
    for (const std::string& site : sites) {
        std::string path = site + "/torch/utils/cpp_extension.py";
        std::ifstream file{path};
        for (std::string line; std::getline(file, line);) {
            if (line.find("['ninja', '--version']") != std::string::npos ||
                line.find("[\"ninja\", \"--version\"]") != std::string::npos) {
                return path;
            }
        }
    }
    return {};
}

// ninja, as the process last called it.
const AskedProgram* last_ninja(const Process& process) {
    const auto last =
        std::find_if(process.asked_programs.rbegin(), process.asked_programs.rend(),
                     [](const AskedProgram& asked) { return base_name(asked.path) == "ninja"; });
    return last == process.asked_programs.rend() ? nullptr : &*last;
}

bool anything_ran_in(const Build& build, const std::string& directory) {
    return std::any_of(build.steps.begin(), build.steps.end(), [&](const BuildStep& step) {
        return step.cwd == directory && step.tool() != "ninja" && step.tool() != "make";
    });
}

}  // namespace

std::optional<Finding> build_nothing_built(const Facts& facts, const Process& process,
                                           const LoadFailure& failure) {
    const LoaderError error = parse_loader_error(failure.error);
    const std::string output = error.subject;
    const std::string directory = directory_of(output);
    std::error_code ignored;
    if (error.form != ErrorForm::missing_file || directory.empty() || fs::exists(output, ignored) ||
        !fs::exists(directory + "/build.ninja", ignored) ||
        anything_ran_in(facts.build, directory)) {
        return std::nullopt;
    }
    const AskedProgram* ninja = last_ninja(process);
    if (ninja == nullptr || ninja->error != 0 || ninja->status != 0) {
        return std::nullopt;
    }
    static const std::vector<Module> none;
    const auto& modules = process.snapshots.empty() ? none : process.snapshots.rbegin()->second;
    const std::string patched = patched_file(site_packages_dirs(process, modules));
    Finding finding;
    finding.slug = "build-nothing-built";
    finding.severity = Severity::error;
    finding.title = say("ninja was called, ended well and built nothing: there is no {}", output);
    finding.time_ns = failure.time_ns;
    finding.pid = process.pid;
    finding.tid = failure.tid;
    finding.argv = process.argv;
    finding.python = failure.python;
    finding.evidence["error"] = failure.error;
    finding.evidence["ninja"] = ninja->path;
    finding.evidence["argv"] = ninja->arguments;
    finding.evidence["output"] = output;
    finding.evidence["patched_file"] = patched;
    const std::string python = python_command(process);
    if (!patched.empty()) {
        finding.fixes.push_back(
            {.text = say("undo the change in torch that asks ninja for its version where it should "
                         "build; the build's true error then shows"),
             .command = fmt::format("sed -i \"s/'ninja', '--version'/'ninja', '-v'/\" {}",
                                    shell_quoted(patched))});
    } else if (is_script(ninja->path)) {
        finding.fixes.push_back(
            {.text = say("{} is a script: take it away, and install the real one", ninja->path),
             .command = fmt::format("rm {} && {} -m pip install --force-reinstall ninja",
                                    shell_quoted(ninja->path), python)});
    } else {
        finding.fixes.push_back({.text = say("see what it does when it is asked to build"),
                                 .command = fmt::format("{} -v -C {}", shell_quoted(ninja->path),
                                                        shell_quoted(directory))});
    }
    finding.limits = say(
        "what was wrong with the build before it was silenced is not known: build again to see");
    return finding;
}

}  // namespace cudiag
