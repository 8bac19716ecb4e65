// Builds made by hand for the build rules: steps as command lines, and what a toolkit or a program
// is to them.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <csignal>
#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "diagnose/build/rules.h"
#include "diagnose/build/words.h"
#include "tests/unit/diagnose/loader/elf_world.h"

namespace cudiag::testing {

// A moment of a build: ms after it began.
constexpr std::uint64_t at(std::uint64_t ms) {
    return 1'000'000'000'000 + ms * 1'000'000;
}

// A step that began and never said its end. A bare name lies in /usr/bin.
inline BuildStep running(std::int32_t pid, std::int32_t parent, const std::string& command,
                         std::uint64_t begin) {
    BuildStep step;
    step.pid = pid;
    step.parent = parent;
    step.argv = split(command, ' ');
    const std::string& name = step.argv.front();
    step.exe = name.find('/') == std::string::npos ? "/usr/bin/" + name : name;
    step.cwd = "/project";
    step.start_ns = at(begin);
    return step;
}

inline BuildStep failed(std::int32_t pid, std::int32_t parent, const std::string& command,
                        std::uint64_t begin, std::uint64_t end, int status = 1) {
    BuildStep step = running(pid, parent, command, begin);
    step.end_ns = at(end);
    step.how = EndHow::exit;
    step.status = status;
    return step;
}

inline BuildStep ran(std::int32_t pid, std::int32_t parent, const std::string& command,
                     std::uint64_t begin, std::uint64_t end) {
    return failed(pid, parent, command, begin, end, 0);
}

inline BuildStep killed(std::int32_t pid, std::int32_t parent, const std::string& command,
                        std::uint64_t begin, std::uint64_t end, int signal = SIGKILL) {
    BuildStep step = running(pid, parent, command, begin);
    step.end_ns = at(end);
    step.signal = signal;
    return step;
}

inline Facts facts_with(std::vector<BuildStep> steps) {
    Facts facts;
    facts.build.steps = std::move(steps);
    return facts;
}

using Environment = std::map<std::string, std::string>;

// ninja > LEAF, ninja failing of it; the leaf's parent is 10.
inline Facts under_ninja(const BuildStep& leaf, const Environment& environment = {}) {
    BuildStep ninja = failed(10, 0, "ninja -j2", 0, 900);
    ninja.environment = environment;
    return facts_with({ninja, leaf});
}

// ninja > nvcc > gcc > LEAF, all failing of it; the leaf's parent is 30.
inline Facts under_nvcc(const std::string& nvcc, const BuildStep& leaf,
                        const Environment& environment = {}) {
    Facts facts =
        under_ninja(failed(20, 10, nvcc + " -c /src/fused.cu -o fused.o", 100, 800), environment);
    facts.build.steps.push_back(failed(30, 20, "gcc -c -x c++ /src/fused.cu", 200, 700));
    facts.build.steps.push_back(leaf);
    return facts;
}

// The first failure of a build. The facts must outlive it.
inline BuildCase first_case(const Facts& facts) {
    return failed_steps(facts).at(0);
}

BuildCase first_case(Facts&&) = delete;

// A file that can be run, for whoever only looks.
inline std::string program(const ElfWorld& world, const std::string& relative,
                           const std::string& text = "#!/bin/sh\n") {
    const std::string path = world.text(relative, text);
    std::filesystem::permissions(path, std::filesystem::perms::owner_all);
    return path;
}

// A toolkit as far as the rules look: an nvcc, and a cuda.h that tells its release. Its nvcc.
inline std::string toolkit(const ElfWorld& world, const std::string& release,
                           const std::string& home = "cuda") {
    const auto dot = release.find('.');
    const int number =
        std::stoi(release.substr(0, dot)) * 1000 + std::stoi(release.substr(dot + 1)) * 10;
    world.text(home + "/include/cuda.h", "#define CUDA_VERSION " + std::to_string(number) + "\n");
    return program(world, home + "/bin/nvcc");
}

// A wheel as pip leaves it behind: its metadata alone. The site-packages directory.
inline std::string wheel(const ElfWorld& world, const std::string& name,
                         const std::string& version) {
    const std::string site = "venv/lib/python3.11/site-packages";
    const std::string metadata = site + "/" + name + "-" + version + ".dist-info";
    world.text(metadata + "/METADATA",
               "Metadata-Version: 2.1\nName: " + name + "\nVersion: " + version + "\n");
    world.text(metadata + "/RECORD", "");
    world.text(metadata + "/INSTALLER", "pip\n");
    return world.path(site);
}

// A Python of that environment which ended with status 1 of an exception.
inline Process python_that_raised(const ElfWorld& world, const std::string& type,
                                  const std::string& message, const std::string& function = "") {
    Process process;
    process.pid = process.root_pid = 5;
    process.argv = {world.path("venv/bin/python"), "train.py"};
    process.exe = process.argv.front();
    process.cwd = world.path();
    process.end = EndHow::exit;
    process.end_status = 1;
    process.end_time_ns = at(1000);
    PythonException exception;
    exception.time_ns = at(990);
    exception.type = type;
    exception.message = message;
    exception.python = {{"train.py", 3, function}};
    process.exceptions = {exception};
    return process;
}

inline std::vector<std::string> commands_of(const Finding& finding) {
    std::vector<std::string> commands;
    for (const Fix& fix : finding.fixes) {
        commands.push_back(fix.command);
    }
    return commands;
}

inline bool holds(const std::string& text, const std::string& part) {
    return text.find(part) != std::string::npos;
}

inline bool proposes(const Finding& finding, const std::string& part) {
    const auto commands = commands_of(finding);
    return std::any_of(commands.begin(), commands.end(),
                       [&](const std::string& command) { return holds(command, part); });
}

}  // namespace cudiag::testing
