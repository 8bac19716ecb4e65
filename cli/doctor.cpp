#include <fmt/core.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>

#include "cli/commands.h"
#include "cli/doctor_trials.h"
#include "diagnose/doctor/rules.h"
#include "diagnose/say.h"
#include "present/doctor.h"
#include "present/finding_json.h"
#include "present/spoken.h"

extern char** environ;

namespace cudiag {
namespace {

Variables own_environment() {
    Variables variables;
    for (char** entry = environ; *entry != nullptr; ++entry) {
        const std::string text = *entry;
        const auto equals = text.find('=');
        if (equals != std::string::npos) {
            variables[text.substr(0, equals)] = text.substr(equals + 1);
        }
    }
    return variables;
}

bool asks_for_nonsense(const DoctorOptions& options) {
    if ((options.dry_run || options.yes) && !options.fix) {
        complain(say("{} goes with --fix", options.dry_run ? "--dry-run" : "--yes"));
        return true;
    }
    if (options.fix && options.json) {
        complain(say("--fix and --json exclude each other"));
        return true;
    }
    if (options.fix && !options.dry_run && !options.yes && isatty(STDIN_FILENO) == 0) {
        complain(
            say("--fix asks before it runs anything, and there is nobody to ask: --fix --dry-run "
                "shows the script, --fix --yes runs it"));
        return true;
    }
    return false;
}

bool agreed() {
    fmt::print(stderr, "cudiag: {}", spoken(say("run this? [y/N] ")));
    (void)std::fflush(stderr);
    const int answer = std::getchar();
    return answer == 'y' || answer == 'Y';
}

// By /bin/sh, with this terminal as its own: installers ask and show where they are.
bool run_by_shell(const std::string& file) {
    std::string shell = "/bin/sh";
    std::string script = file;
    char* arguments[] = {shell.data(), script.data(), nullptr};
    pid_t child = -1;
    int status = -1;
    if (posix_spawn(&child, shell.c_str(), nullptr, nullptr, arguments, environ) != 0) {
        return false;
    }
    while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
    }
    return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

int run_script(const std::string& script) {
    std::string name = (std::filesystem::temp_directory_path() / "cudiag-fix-XXXXXX").string();
    const int fd = mkstemp(name.data());
    if (fd < 0) {
        complain(say("cannot write a script to {}", name));
        return kCouldNotRun;
    }
    const bool written =
        write(fd, script.data(), script.size()) == static_cast<ssize_t>(script.size());
    (void)close(fd);
    const bool done = written && run_by_shell(name);
    (void)unlink(name.c_str());
    if (!done) {
        complain(say("the script ended before its end: what it could not do is said above"));
    }
    return done ? kNothingFound : kCouldNotRun;
}

int mend(const Examination& examination, const DoctorOptions& options) {
    const std::string script = repair_script(examination);
    if (script.empty()) {
        complain(examination.any_red() ? say("what is red can be mended by no command")
                                       : say("nothing is red: there is nothing to mend"));
        return examination.any_red() ? kFound : kNothingFound;
    }
    fmt::print("{}", script);
    (void)std::fflush(stdout);
    if (options.dry_run) {
        return examination.any_red() ? kFound : kNothingFound;
    }
    if (!options.yes && !agreed()) {
        return kFound;
    }
    return run_script(script);
}

}  // namespace

int doctor_command(const DoctorOptions& options) {
    if (asks_for_nonsense(options)) {
        return kBadUsage;
    }
    const DoctorFacts facts = observe_environment(options.python, own_environment());
    if (facts.python.path.empty()) {
        if (!options.python.empty()) {
            complain(
                say("{} is no program: --python takes a Python, by its path or its "
                    "name in PATH",
                    options.python));
            return kBadUsage;
        }
        complain(
            say("there is no Python in PATH, VIRTUAL_ENV or CONDA_PREFIX: name one (--python PY)"));
        return kCouldNotRun;
    }
    Examination examination = examine(facts);  // after this: answers, with what they rest on
    if (options.build) {
        examination.add(really_build(facts));
    }
    if (options.launch) {
        examination.add(really_launch(facts));
    }
    if (options.fix) {
        return mend(examination, options);
    }
    if (options.json) {
        fmt::print("{}", json_line(examination_json(examination)));
    } else {
        fmt::print("{}", render_examination(examination, style_for(STDOUT_FILENO)));
    }
    return examination.any_red() ? kFound : kNothingFound;
}

}  // namespace cudiag
