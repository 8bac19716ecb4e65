// build-missing-compiler: nvcc, a host compiler or ninja is not where it was called, or is there
// and does not start.
#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <fstream>
#include <set>

#include "diagnose/build/fixes.h"
#include "diagnose/build/rules.h"
#include "diagnose/build/words.h"
#include "diagnose/knowledge/knowledge.h"
#include "diagnose/loader/surroundings.h"
#include "diagnose/say.h"

namespace cudiag {
namespace {

namespace fs = std::filesystem;

bool can_run(const std::string& path) {
    std::error_code error;
    return fs::is_regular_file(path, error) && access(path.c_str(), X_OK) == 0;
}

std::string found_in(const std::string& program, const std::vector<std::string>& path) {
    for (const std::string& directory : path) {
        if (can_run(directory + "/" + program)) {
            return directory + "/" + program;
        }
    }
    return {};
}

// The programs that a shell's command line calls, as far as words tell: the first word of each
// simple command, less assignments and what a shell does itself. Quotes keep words together.
std::vector<std::string> called_programs(const std::string& command) {
    // Reserved words and built-in utilities (POSIX.1-2017, XCU 2.4, 2.14 and 1.6; bash(1)).
    static const std::set<std::string> own{
        "!",      "{",        "}",      ".",     ":",       "[",        "[[",       "alias",
        "bg",     "break",    "case",   "cd",    "command", "continue", "declare",  "do",
        "done",   "echo",     "elif",   "else",  "esac",    "eval",     "exec",     "exit",
        "export", "false",    "fc",     "fg",    "fi",      "for",      "function", "getopts",
        "hash",   "if",       "jobs",   "kill",  "let",     "local",    "printf",   "pwd",
        "read",   "readonly", "return", "set",   "shift",   "shopt",    "source",   "test",
        "then",   "time",     "times",  "trap",  "true",    "type",     "typeset",  "ulimit",
        "umask",  "unalias",  "unset",  "until", "wait",    "while"};
    // After these comes another command.
    static const std::set<std::string> openers{"!",    "{",  "command", "do",   "elif",  "else",
                                               "exec", "if", "then",    "time", "until", "while"};
    std::vector<std::string> programs;
    bool first = true;
    std::string word;
    char quote = '\0';
    const auto finish = [&] {
        if (word.empty()) {
            return;
        }
        const auto equals = word.find('=');
        const bool assignment =
            equals != std::string::npos && equals > 0 && word.find('/') > equals;
        if (first && !assignment) {
            // What a variable holds is not known.
            if (own.count(word) == 0 && word.find('$') == std::string::npos) {
                programs.push_back(word);
            }
            first = openers.count(word) != 0;
        }
        word.clear();
    };
    for (const char c : command) {
        if (quote != '\0') {
            if (c == quote) {
                quote = '\0';
            } else {
                word += c;
            }
        } else if (c == '\'' || c == '"') {
            quote = c;
        } else if (c == ' ' || c == '\t') {
            finish();
        } else if (c == ';' || c == '&' || c == '|' || c == '\n' || c == '(') {
            finish();
            first = true;
        } else {
            word += c;
        }
    }
    finish();
    return programs;
}

// What a shell that ended with 126 or 127 was asked to run and could not.
std::string not_run_by_shell(const BuildCase& c) {
    const auto given = std::find(c.step.argv.begin(), c.step.argv.end(), "-c");
    if (given == c.step.argv.end() || given + 1 == c.step.argv.end()) {
        return {};
    }
    const std::vector<std::string> path = split(c.variable("PATH"), ':');
    for (const std::string& program : called_programs(*(given + 1))) {
        const bool there = program.find('/') != std::string::npos
                               ? can_run(absolute_path(program, c.step.cwd))
                               : !found_in(program, path).empty();
        if (!there) {
            return program;
        }
    }
    return {};
}

// What the step itself could not start: exec found no such file, or one that is not to be run.
const AskedProgram* not_started_by_step(const BuildCase& c) {
    for (const AskedProgram& failed : c.facts.build.asked_programs) {
        // A child of the step, or the step itself: ccache becomes the compiler.
        const bool its_own = failed.parent == c.step.pid || failed.pid == c.step.pid;
        if (its_own && !failed.path.empty() &&
            (failed.error == ENOENT || failed.error == ENOTDIR || failed.error == EACCES ||
             failed.error == ENOEXEC)) {
            return &failed;
        }
    }
    return nullptr;
}

// Is the file there all the same: not executable, or a script whose interpreter is not?
bool is_there(const BuildCase& c, const std::string& asked) {
    std::error_code error;
    return asked.find('/') != std::string::npos &&
           fs::is_regular_file(absolute_path(asked, c.step.cwd), error);
}

// Names under which the same kind of compiler may be installed.
std::vector<std::string> alternatives(const std::string& program) {
    if (program == "c++" || program == "g++") {
        return {"g++", "c++", "clang++", "g++-12", "g++-11", "g++-13", "g++-14"};
    }
    if (program == "cc" || program == "gcc") {
        return {"gcc", "cc", "clang", "gcc-12", "gcc-11", "gcc-13", "gcc-14"};
    }
    return {program};
}

std::vector<std::string> copies_of(const BuildCase& c, const std::string& program) {
    std::vector<std::string> copies;
    std::vector<std::string> directories = split(c.variable("PATH"), ':');
    for (const char* usual : {"/usr/local/bin", "/usr/bin", "/bin"}) {
        directories.emplace_back(usual);
    }
    for (const std::string& site : c.site_packages()) {
        directories.push_back(
            (fs::path{site}.parent_path().parent_path().parent_path() / "bin").string());
    }
    if (program == "nvcc") {
        for (const Toolkit& toolkit : c.toolkits()) {
            directories.push_back(toolkit.home + "/bin");
        }
    }
    for (const std::string& name : alternatives(program)) {
        for (const std::string& directory : directories) {
            const std::string path = directory + "/" + name;
            if (can_run(path) && std::find(copies.begin(), copies.end(), path) == copies.end()) {
                copies.push_back(path);
            }
        }
    }
    return copies;
}

// "13.0" of the CUDA that torch was built for; "" without torch.
std::string cuda_of_torch(const BuildCase& c) {
    const std::string torch = c.torch_version();
    const TorchRelease* release = torch.empty() ? nullptr : torch_release(torch);
    return release == nullptr ? "" : release->cuda;
}

std::vector<Fix> fixes_for_nvcc(const BuildCase& c) {
    const std::string wanted = cuda_of_torch(c);
    std::vector<Fix> fixes;
    for (const Toolkit& toolkit : c.toolkits()) {
        if (wanted.empty() || toolkit.release == wanted ||
            toolkit.release.substr(0, toolkit.release.find('.')) ==
                wanted.substr(0, wanted.find('.'))) {
            fixes.push_back(fix_by_cuda_home(toolkit));
        }
    }
    // That of torch's own release before others of its major.
    std::stable_partition(fixes.begin(), fixes.end(), [&](const Fix& fix) {
        return fix.text.find("CUDA " + wanted + " ") != std::string::npos;
    });
    constexpr std::size_t kMost = 2;
    fixes.resize(std::min(fixes.size(), kMost));
    const std::vector<Fix> installs = fixes_by_toolkit(c, wanted);
    fixes.insert(fixes.end(), installs.begin(), installs.end());
    return fixes;
}

std::vector<Fix> fixes_for_program(const BuildCase& c, const std::string& program,
                                   const std::vector<std::string>& copies) {
    std::vector<Fix> fixes;
    const std::vector<std::string> path = split(c.variable("PATH"), ':');
    if (!copies.empty() && found_in(program, path).empty() &&
        base_name(copies.front()) == program) {
        const std::string directory = directory_of(copies.front());
        fixes.push_back(
            {.text = say("{} is installed, but its directory is not in PATH", copies.front()),
             .command = fmt::format("export PATH={}:\"$PATH\"", shell_quoted(directory))});
    }
    if (program == "ninja") {
        fixes.push_back({.text = say("install ninja beside the program"),
                         .command = fmt::format("{} -m pip install ninja", c.python())});
        fixes.push_back(
            {.text = say("or by the system"), .command = "apt-get install ninja-build"});
    } else if (program == "c++" || program == "g++" || program == "gcc" || program == "cc") {
        fixes.push_back(
            {.text = say("install the host compiler"), .command = "apt-get install gcc g++"});
        fixes.push_back({.text = say("or by conda (then export CC and CXX as its activation says)"),
                         .command = "conda install -c conda-forge gxx_linux-64"});
    } else if (program == "make" || program == "cmake" || program == "ccache") {
        fixes.push_back({.text = say("install it"), .command = "apt-get install " + program});
    }
    return fixes;
}

}  // namespace

Finding missing_program(const BuildCase& c, const std::string& asked, bool broken) {
    const std::string program = base_name(asked);
    const std::string home = c.variable("CUDA_HOME");
    const std::vector<std::string> copies = copies_of(c, program);
    std::string title;
    if (broken) {
        title = say("{} is there but does not run: {}", program, asked);
    } else if (asked.find('/') != std::string::npos) {
        title = say("{} does not exist", asked);
        if (program == "nvcc" && !home.empty() && asked.rfind(home, 0) == 0) {
            title += say(": CUDA_HOME={} leads to no toolkit", home);
        }
    } else {
        title = say("{} is in no directory of PATH", program);
    }
    Finding finding = begin_finding(c, "build-missing-compiler", std::move(title));
    finding.evidence["program"] = program;
    finding.evidence["asked"] = asked;
    finding.evidence["state"] = broken ? "broken" : "absent";
    finding.evidence["path"] = split(c.variable("PATH"), ':');
    finding.evidence["cuda_home"] = home;
    finding.evidence["copies"] = copies;
    if (broken) {
        finding.fixes.push_back(
            {.text = program == "ninja" ? say("replace the one that is broken")
                                        : say("see why it does not run"),
             .command = program == "ninja"
                            ? fmt::format("{} -m pip install --force-reinstall ninja", c.python())
                            : shell_quoted(asked) + " --version"});
        finding.limits = say("why it does not run is said by what it printed itself");
        return finding;
    }
    finding.fixes = program == "nvcc" ? fixes_for_nvcc(c) : fixes_for_program(c, program, copies);
    finding.limits =
        say("what a makefile or a setup.py would choose with these settings is not tried");
    return finding;
}

namespace {

// The program that "ccache /usr/local/cuda/bin/nvcc" is about: torch puts ccache or sccache before
// its compilers where one is installed, and PYTORCH_NVCC may hold any command.
std::string compiler_of(const std::string& command) {
    static const std::set<std::string> wrappers{"ccache", "sccache", "distcc", "icecc", "env"};
    for (const std::string& word : shell_words(command)) {
        if (wrappers.count(base_name(word)) == 0 && word.find('=') == std::string::npos) {
            return word;
        }
    }
    return {};
}

// A value of a build.ninja as ninja hands it to the shell ("Lexical syntax" of its manual).
std::string ninja_value(const std::string& text) {
    std::string value;
    for (std::size_t i = 0; i < text.size(); ++i) {
        const bool escaped = text[i] == '$' && i + 1 < text.size() &&
                             (text[i + 1] == '$' || text[i + 1] == ' ' || text[i + 1] == ':');
        value += escaped ? text[++i] : text[i];
    }
    return value;
}

// What "nvcc = …" of a build.ninja names, if a rule of it is used; "" if none is.
std::string nvcc_of_build_file(const std::string& path) {
    std::ifstream file{path};
    std::string nvcc;
    bool used = false;
    for (std::string line; std::getline(file, line);) {
        if (line.rfind("nvcc = ", 0) == 0) {
            nvcc = compiler_of(ninja_value(line.substr(std::string{"nvcc = "}.size())));
        }
        used = used ||
               (line.rfind("build ", 0) == 0 && line.find(": cuda_compile") != std::string::npos);
    }
    return used ? nvcc : "";
}

}  // namespace

std::optional<Finding> build_missing_compiler(const BuildCase& c) {
    constexpr int kCannotRun = 126;
    constexpr int kNotFound = 127;
    if (const AskedProgram* failed = not_started_by_step(c)) {
        return missing_program(c, failed->path, is_there(c, failed->path));
    }
    if (c.step.status != kNotFound && c.step.status != kCannotRun) {
        return std::nullopt;
    }
    const std::string asked = not_run_by_shell(c);
    if (asked.empty()) {
        return std::nullopt;
    }
    return missing_program(c, asked, c.step.status == kCannotRun || is_there(c, asked));
}

std::optional<Finding> build_missing_compiler_ahead(const Facts& facts) {
    for (const FileNote& note : facts.build.build_files) {
        const std::string nvcc = nvcc_of_build_file(note.path);
        if (nvcc.empty() || nvcc.front() != '/' || can_run(nvcc)) {
            continue;
        }
        BuildStep step;  // the step that is going to fail
        step.pid = note.pid;
        step.end_ns = note.time_ns;
        step.exe = nvcc;
        step.argv = {nvcc};
        const Process process = process_of(facts, note.pid);
        const BuildCase c{.facts = facts, .step = step, .above = {}, .root = &process};
        Finding finding = missing_program(c, nvcc, false);
        finding.evidence["build_file"] = note.path;
        finding.python = note.python;
        finding.argv = process.argv;
        return finding;
    }
    return std::nullopt;
}

}  // namespace cudiag
