#include "diagnose/doctor/programs.h"

#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <sstream>

#include "diagnose/build/words.h"
#include "diagnose/say.h"

namespace cudiag {

std::string found_on_path(const std::string& program, const std::string& path) {
    const auto can_run = [](const std::string& file) {
        std::error_code error;
        return std::filesystem::is_regular_file(file, error) && access(file.c_str(), X_OK) == 0;
    };
    if (program.find('/') != std::string::npos) {
        return can_run(program) ? program : "";
    }
    for (const std::string& directory : split(path, ':')) {
        std::string file = directory + "/" + program;
        if (!program.empty() && can_run(file)) {
            return file;
        }
    }
    return {};
}

LoaderRun ask_program(const std::vector<std::string>& command, const Variables& environment,
                      int seconds) {
    std::vector<std::string> variables;
    variables.reserve(environment.size() + 1);
    for (const auto& [name, value] : environment) {
        // Their own words, whatever the user's language: they are read here.
        if (name != "LC_ALL" && name != "LANGUAGE") {
            variables.push_back(name + "=" + value);
        }
    }
    variables.emplace_back("LC_ALL=C");
    return run_loader(command, variables, "", seconds);
}

bool succeeded(const LoaderRun& run) {
    return run.started && !run.timed_out && WIFEXITED(run.status) && WEXITSTATUS(run.status) == 0;
}

std::string complaint_of(const LoaderRun& run) {
    if (!run.started) {
        return std::strerror(run.error_number);
    }
    if (run.timed_out) {
        return say("it did not end within the time that it was given");
    }
    std::istringstream lines{run.err + "\n" + run.out};
    std::string first;
    for (std::string line; std::getline(lines, line);) {
        const bool complains = line.find("rror") != std::string::npos ||
                               line.find("fatal") != std::string::npos ||
                               line.find("not found") != std::string::npos;
        if (complains) {
            return line;
        }
        if (first.empty()) {
            first = line;
        }
    }
    if (WIFSIGNALED(run.status)) {
        return say("it died of signal {}", WTERMSIG(run.status));
    }
    return first.empty() ? say("exit status {}", WEXITSTATUS(run.status)) : first;
}

}  // namespace cudiag
