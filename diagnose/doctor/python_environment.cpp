#include "diagnose/doctor/python_environment.h"

#include <fmt/core.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "diagnose/build/words.h"
#include "diagnose/doctor/programs.h"
#include "diagnose/packages/databases.h"
#include "diagnose/say.h"

namespace cudiag {
namespace {

namespace fs = std::filesystem;

// Without site a venv is not recognised: what site.venv() does is done here, and no .pth is read.
// For Python 3.6 to 3.15. torch's own builds take Python.h from the scheme posix_prefix.
constexpr const char* kQuestion = R"(
import _imp, json, os, site, sys, sysconfig
program = os.path.abspath(sys.executable)
prefix, shared = sys.prefix, True
for directory in (os.path.dirname(program), os.path.dirname(os.path.dirname(program))):
    try:
        with open(os.path.join(directory, 'pyvenv.cfg'), encoding='utf-8') as lines:
            settings = dict((k.strip().lower(), v.strip().lower()) for k, _, v in (l.partition('=') for l in lines))
    except OSError:
        continue
    prefix = directory
    shared = settings.get('include-system-site-packages', 'false') == 'true'
    break
else:
    shared = True
sys.prefix = sys.exec_prefix = prefix
places = [p for p in os.environ.get('PYTHONPATH', '').split(os.pathsep) if p]
if shared and not os.environ.get('PYTHONNOUSERSITE') and os.geteuid() == os.getuid():
    places.append(site.getusersitepackages())
places += site.getsitepackages([prefix])
if shared and prefix != sys.base_prefix:
    places += site.getsitepackages([sys.base_prefix])
try:
    include = sysconfig.get_path('include', 'posix_prefix')
except KeyError:
    include = sysconfig.get_path('include')
print(json.dumps({'executable': program, 'version': '.'.join(map(str, sys.version_info[:3])), 'prefix': prefix,
                  'include': include or '', 'suffixes': _imp.extension_suffixes(), 'packages': places}))
)";

std::string chosen_path(const std::string& asked, const Variables& environment,
                        std::string& chosen_by) {
    const auto value = [&](const char* name) {
        const auto found = environment.find(name);
        return found == environment.end() ? std::string{} : found->second;
    };
    const std::string path = environment.count("PATH") != 0 ? value("PATH") : "/usr/bin:/bin";
    if (!asked.empty()) {
        chosen_by = "--python";
        return found_on_path(asked, path);
    }
    for (const char* name : {"VIRTUAL_ENV", "CONDA_PREFIX"}) {
        const std::string prefix = value(name);
        std::string python = prefix.empty() ? "" : found_on_path(prefix + "/bin/python", path);
        if (!python.empty()) {
            chosen_by = name;
            return python;
        }
    }
    chosen_by = "PATH";
    for (const char* name : {"python3", "python"}) {
        if (std::string python = found_on_path(name, path); !python.empty()) {
            return python;
        }
    }
    return {};
}

// Directories that .pth files add, as site.addpackage() does; lines that are code do not run here.
void add_paths_of(const std::string& directory, std::vector<std::string>& packages) {
    for (const std::string& file : entries_ending(directory, ".pth")) {
        std::ifstream stream{file};
        for (std::string line; std::getline(stream, line);) {
            while (!line.empty() && std::isspace(static_cast<unsigned char>(line.back())) != 0) {
                line.pop_back();
            }
            std::error_code error;
            if (line.empty() || line.front() == '#' || line.rfind("import", 0) == 0) {
                continue;
            }
            const std::string added = absolute_path(line, directory);
            if (fs::is_directory(added, error) &&
                std::find(packages.begin(), packages.end(), added) == packages.end()) {
                packages.push_back(added);
            }
        }
    }
}

void read_answer(const std::string& text, PythonEnvironment& python) {
    const auto answer = nlohmann::json::parse(text, nullptr, false);
    if (!answer.is_object()) {
        python.problem = say("it did not answer as a Python does");
        return;
    }
    python.version = answer.value("version", "");
    python.prefix = answer.value("prefix", "");
    python.include_directory = answer.value("include", "");
    python.extension_suffixes = answer.value("suffixes", std::vector<std::string>{});
    // A shim of pyenv or a shell script is not where the environment is.
    python.path = answer.value("executable", python.path);
    std::error_code error;
    const fs::path real = fs::canonical(python.path, error);
    python.executable = error ? python.path : real.string();
    for (const std::string& place : answer.value("packages", std::vector<std::string>{})) {
        if (fs::is_directory(place, error) &&
            std::find(python.packages.begin(), python.packages.end(), place) ==
                python.packages.end()) {
            python.packages.push_back(place);
            add_paths_of(place, python.packages);
        }
    }
}

}  // namespace

PythonEnvironment python_environment(const std::string& asked, const Variables& environment) {
    PythonEnvironment python;
    python.path = chosen_path(asked, environment, python.chosen_by);
    if (python.path.empty()) {
        return python;
    }
    std::error_code error;
    python.path = fs::absolute(python.path, error).string();
    python.executable = python.path;
    const LoaderRun run = ask_program({python.path, "-I", "-S", "-c", kQuestion}, environment);
    if (!succeeded(run)) {
        python.problem = complaint_of(run);
        return python;
    }
    read_answer(run.out, python);
    return python;
}

std::string module_at(const PythonEnvironment& python, const std::string& name) {
    std::error_code error;
    for (const std::string& directory : python.packages) {
        std::string path = directory + "/" + name;
        if (fs::exists(path + "/__init__.py", error)) {
            return path;
        }
        std::vector<std::string> endings = python.extension_suffixes;
        endings.emplace_back(".py");
        for (const std::string& ending : endings) {
            if (fs::exists(path + ending, error)) {
                return path + ending;
            }
        }
    }
    return {};
}

}  // namespace cudiag
