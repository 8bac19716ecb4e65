#include "cli/preflight.h"

#include <fmt/core.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "diagnose/loader/rules.h"
#include "diagnose/say.h"

namespace cudiag {
namespace {

namespace fs = std::filesystem;

std::string found_in_path(const std::string& program) {
    if (program.find('/') != std::string::npos) {
        return program;
    }
    const char* path = std::getenv("PATH");
    std::istringstream list{path == nullptr ? "/bin:/usr/bin" : path};
    for (std::string directory; std::getline(list, directory, ':');) {
        std::string candidate = (directory.empty() ? "." : directory) + "/" + program;
        std::error_code error;
        if (access(candidate.c_str(), X_OK) == 0 && fs::is_regular_file(candidate, error)) {
            return candidate;
        }
    }
    return {};
}

// The process that is about to be, as far as it is known before it starts.
Process process_to_be(const std::string& program) {
    Process process;
    std::error_code error;
    process.exe = fs::canonical(program, error).string();
    process.argv = {program};
    process.cwd = fs::current_path(error).string();
    process.end = EndHow::exit;
    process.end_status = 127;
    for (const char* name : {"LD_LIBRARY_PATH", "PATH", "CUDA_HOME", "CUDA_PATH", "CONDA_PREFIX",
                             "VIRTUAL_ENV", "PYTHONPATH"}) {
        if (const char* value = std::getenv(name)) {
            process.environment[name] = value;
        }
    }
    return process;
}

Finding not_preloaded(const std::string& program, const std::string& why) {
    Finding finding;
    finding.slug = "process-not-preloaded";
    finding.severity = Severity::warning;
    finding.title = say("{} runs without the shim: {}", program, why);
    finding.evidence["program"] = program;
    finding.evidence["why"] = why;
    finding.limits =
        say("what happens inside it is not seen; programs that it starts may be seen again");
    return finding;
}

}  // namespace

std::vector<Finding> check_program(const std::string& program) {
    std::vector<Finding> findings;
    const std::string path = found_in_path(program);
    const ElfRead read = path.empty() ? ElfRead{} : read_elf(path);
    if (!read.file) {
        return findings;  // a script, or nothing: exec will tell
    }

    struct stat status {};

    if (stat(path.c_str(), &status) == 0 && (status.st_mode & (S_ISUID | S_ISGID)) != 0 &&
        geteuid() != 0) {
        findings.push_back(
            not_preloaded(path, say("it is setuid or setgid, and ld.so then drops LD_PRELOAD")));
    } else if (read.file->interpreter.empty()) {
        findings.push_back(
            not_preloaded(path, say("it is linked statically: no ld.so, no LD_PRELOAD")));
    } else {
        const Process process = process_to_be(path);
        const Machine machine = observe_machine();
        LoadFailure failure;
        failure.asked = process.exe;
        failure.breakage = true;
        const Resolution resolution = resolve_program(load_state_of(process, {}), process.exe, {});
        if (const Lookup* missing = resolution.first_missing()) {
            failure.error =
                missing->name + ": cannot open shared object file: No such file or directory";
            LoaderCase c = make_case(process, failure, machine);
            c.resolution = resolution;
            for (const auto rule :
                 {loader_missing_driver, package_broken, loader_missing_library}) {
                if (auto finding = rule(c)) {
                    findings.push_back(std::move(*finding));
                    break;
                }
            }
        }
    }
    return findings;
}

}  // namespace cudiag
