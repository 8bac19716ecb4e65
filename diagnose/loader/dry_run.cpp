#include "diagnose/loader/dry_run.h"

#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <sstream>

#include "diagnose/loader/dry_run_preloads.h"
#include "diagnose/loader/loader_run.h"
#include "diagnose/say.h"

namespace cudiag {
namespace {

std::string base_name(const std::string& path) {
    return path.substr(path.rfind('/') + 1);
}

bool begins(const std::string& text, const char* with) {
    return text.compare(0, std::strlen(with), with) == 0;
}

bool contains(const std::vector<std::string>& texts, const std::string& text) {
    return std::find(texts.begin(), texts.end(), text) != texts.end();
}

bool belongs_to_loader(const std::string& path, const std::string& interpreter) {
    const std::string name = base_name(path);
    return path == interpreter || begins(name, "ld-linux") || begins(name, "ld64.so") ||
           begins(name, "linux-vdso") || begins(name, "linux-gate");
}

// The process's program, if ld.so can be given it: dynamic, and of the same machine.
std::string program_for(const LoadState& state, const std::string& file) {
    if (state.executable.empty() || state.executable == file) {
        return {};
    }
    const std::optional<ElfFile> program = read_elf(state.executable).file;
    const std::optional<ElfFile> interpreter = read_elf(state.config.interpreter).file;
    const bool fits = program && interpreter && !program->needed.empty() &&
                      !program->interpreter.empty() && program->machine == interpreter->machine &&
                      program->bits == interpreter->bits;
    return fits ? state.executable : std::string{};
}

std::string between(const std::string& text, const std::string& before, const std::string& after) {
    const std::size_t start = text.find(before);
    if (start == std::string::npos) {
        return {};
    }
    const std::size_t from = start + before.size();
    const std::size_t end = text.find(after, from);
    return end == std::string::npos ? std::string{} : text.substr(from, end - from);
}

void add_once(std::vector<std::string>& list, const std::string& text) {
    if (!contains(list, text)) {
        list.push_back(text);
    }
}

void add_why(DryRun& run, const std::string& text) {
    run.why += (run.why.empty() ? "" : "; ") + text;
}

// "\tlibx.so.1 => /lib/libx.so.1 (0x…)", "\tlibx.so.1 => not found", "\t/lib/libx.so.1 (0x…)".
void read_listing(const std::string& line, DryRun& run) {
    const std::size_t arrow = line.find(" => ");
    const std::size_t address = line.rfind(" (0x");
    const std::size_t start = line.find_first_not_of('\t');
    if (start == std::string::npos || line.front() != '\t') {
        return;
    }
    if (arrow == std::string::npos) {
        if (address != std::string::npos) {
            const std::string path = line.substr(start, address - start);
            run.mapped.push_back(path + "|" + path);
        }
        return;
    }
    const std::string name = line.substr(start, arrow - start);
    const std::string path =
        line.substr(arrow + 4, address == std::string::npos ? address : address - arrow - 4);
    if (path == "not found") {
        add_once(run.missing, name);
    } else {
        run.mapped.push_back(name + "|" + path);
    }
}

// "undefined symbol: X, version V\t(FILE)" and "symbol X, version V not defined in file F with link
// time reference\t(FILE)".
bool read_undefined(const std::string& line, DryRun& run) {
    const std::size_t tab = line.rfind("\t(");
    if (tab == std::string::npos || line.back() != ')') {
        return false;
    }
    const std::string file = line.substr(tab + 2, line.size() - tab - 3);
    std::string symbol;
    if (begins(line, "undefined symbol: ")) {
        symbol = line.substr(18, tab - 18);
    } else if (begins(line, "symbol ") && line.find(" not defined in file ") != std::string::npos) {
        symbol = line.substr(7, line.find(" not defined in file ") - 7);
    } else {
        return false;
    }
    const std::size_t comma = symbol.find(", version ");
    const std::string version = comma == std::string::npos ? "" : symbol.substr(comma + 10);
    add_once(run.undefined, fmt::format("{}|{}|{}", symbol.substr(0, comma), version, file));
    return true;
}

void read_complaint(const std::string& line, const std::string& program, const std::string& file,
                    DryRun& run) {
    if (line.empty() || read_undefined(line, run)) {
        return;
    }
    if (begins(line, "ERROR: ld.so: object '")) {
        const std::string object = between(line, "object '", "' from ");
        const std::string reason = between(line, "cannot be preloaded (", "): ignored");
        if (object == file) {
            run.failure = reason;
        } else {
            add_why(run, say("{} could not be preloaded ({})", object, reason));
        }
        return;
    }
    const std::string own =
        begins(line, (program + ": ").c_str()) ? line.substr(program.size() + 2) : line;
    if (own.find(" not found (required by ") != std::string::npos) {
        if (own.find(": weak version ") == std::string::npos) {
            add_once(run.version_errors, own);
        }
        return;
    }
    if (own.find("no version information available") != std::string::npos) {
        return;  // a warning: the load goes on
    }
    if (run.failure.empty()) {
        constexpr const char* kFatal = "error while loading shared libraries: ";
        run.failure = begins(own, kFatal) ? own.substr(std::strlen(kFatal)) : own;
    }
}

std::vector<std::string> environment(const DryRunChange& change, const std::string& preloads) {
    std::vector<std::string> variables{"LD_TRACE_LOADED_OBJECTS=1"};
    if (change.symbols) {
        variables.emplace_back("LD_WARN=yes");
        variables.emplace_back("LD_BIND_NOW=yes");
    }
    if (!change.ld_library_path.empty()) {
        variables.push_back("LD_LIBRARY_PATH=" + change.ld_library_path);
    }
    if (!preloads.empty()) {
        variables.push_back("LD_PRELOAD=" + preloads);
    }
    if (!change.glibc_tunables.empty()) {
        variables.push_back("GLIBC_TUNABLES=" + change.glibc_tunables);
    }
    return variables;
}

void add_preloads(const LoadState& state, const std::string& file, const DryRunChange& change,
                  Preloads& preloads, DryRun& run) {
    const auto bring = [&](const std::string& path) {
        if (!preloads.add(path)) {
            add_why(run, say("{} is left out: ld.so cannot be told its name in LD_PRELOAD", path));
        }
    };
    for (const std::string& path : change.preload_first) {
        bring(path);
    }
    bool first = true;
    for (const Module& module : state.modules) {
        const bool program = std::exchange(first, false) || module.path == state.executable;
        if (!change.keep_mapped || program || module.shim || module.path.empty() ||
            module.path == file || belongs_to_loader(module.path, state.config.interpreter) ||
            contains(change.drop_mapped, module.path)) {
            continue;
        }
        if (access(module.path.c_str(), R_OK) != 0) {
            add_why(run, say("{} is no longer there", module.path));
            continue;
        }
        bring(module.path);
    }
}

std::string why_not(const LoaderRun& loader, const std::string& interpreter, int seconds) {
    if (!loader.started) {
        return say("{} could not be started: {}", interpreter, std::strerror(loader.error_number));
    }
    return say("{} took longer than {} s", interpreter, seconds);
}

bool any_failure(const DryRun& run) {
    return !run.missing.empty() || !run.undefined.empty() || !run.version_errors.empty() ||
           !run.failure.empty();
}

struct Undefined {
    std::string symbol, version, file;

    explicit Undefined(const std::string& text) {
        const std::size_t first = text.find('|');
        const std::size_t second = text.find('|', first + 1);
        symbol = text.substr(0, first);
        version = text.substr(first + 1, second - first - 1);
        file = text.substr(second + 1);
    }
};

// Is what is left undefined of the kind that the remedy was to give?
bool half_cured(const Undefined& gone, const Undefined& left) {
    constexpr std::size_t kTelling =
        6;  // "_ZN3c1": the namespace of a mangled name, the family of a C one
    if (gone.file != left.file) {
        return false;
    }
    return gone.version.empty() ? left.symbol.compare(0, kTelling, gone.symbol, 0, kTelling) == 0
                                : gone.version == left.version;
}

}  // namespace

DryRun dry_run(const LoadState& state, const std::string& file, const DryRunChange& change,
               int seconds) {
    DryRun run;
    Preloads preloads;
    add_preloads(state, file, change, preloads, run);
    std::string program = program_for(state, file);
    if (!program.empty() && !preloads.add(file)) {
        program.clear();
    }
    const std::string& traced = program.empty() ? file : program;
    const std::string value = preloads.value();
    // A working directory that is gone by now can hold nothing that the search would find.
    const std::string cwd = access(state.cwd.c_str(), X_OK) == 0 ? state.cwd : "";
    const LoaderRun loader =
        run_loader({state.config.interpreter, traced}, environment(change, value), cwd, seconds);
    if (!loader.started || loader.timed_out) {
        run.why = why_not(loader, state.config.interpreter, seconds);
        return run;
    }
    run.ran = true;
    std::istringstream listing(preloads.original(loader.out));
    for (std::string line; std::getline(listing, line);) {
        if (!line.empty()) {
            read_listing(line, run);
        }
    }
    std::istringstream complaints(preloads.original(loader.err));
    for (std::string line; std::getline(complaints, line);) {
        read_complaint(line, traced, file, run);
    }
    if (WIFSIGNALED(loader.status) && run.failure.empty()) {
        run.failure =
            say("ld.so itself died of signal {} ({}): a file is shorter than its headers say?",
                WTERMSIG(loader.status), strsignal(WTERMSIG(loader.status)));
    }
    return run;
}

bool cures(const DryRun& before, const DryRun& after) {
    if (!before.ran || !after.ran || !any_failure(before) || !after.missing.empty() ||
        !after.failure.empty() || !after.version_errors.empty()) {
        return false;
    }
    std::vector<Undefined> gone;
    for (const std::string& text : before.undefined) {
        if (!contains(after.undefined, text)) {
            gone.emplace_back(text);
        }
    }
    for (const std::string& text : after.undefined) {
        const Undefined left(text);
        const bool half = std::any_of(gone.begin(), gone.end(), [&](const Undefined& cured) {
            return half_cured(cured, left);
        });
        // A library that was missing before brings its own users' symbols to light, so new ones
        // count only without that.
        if (half || (!contains(before.undefined, text) && before.missing.empty())) {
            return false;
        }
    }
    const bool only_symbols =
        before.missing.empty() && before.failure.empty() && before.version_errors.empty();
    return !only_symbols || !gone.empty();
}

}  // namespace cudiag
