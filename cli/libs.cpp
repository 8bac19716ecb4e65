#include <fmt/core.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <optional>
#include <set>

#include "cli/commands.h"
#include "diagnose/elf/elf_file.h"
#include "diagnose/elf/fatbin.h"
#include "diagnose/loader/case.h"
#include "diagnose/loader/mapped.h"
#include "diagnose/say.h"
#include "present/finding_json.h"
#include "present/libraries.h"
#include "present/spoken.h"

namespace cudiag {
namespace {

namespace fs = std::filesystem;

std::optional<std::string> file_argument(const std::string& target) {
    std::error_code error;
    return fs::is_regular_file(target, error) ? std::optional{fs::absolute(target, error).string()}
                                              : std::nullopt;
}

// A bare SONAME is resolved as ld.so would for a program without a run path of its own.
std::string by_name(const LoadState& state, const std::string& name) {
    const Resolution resolution = resolve_dlopen(state, name, "");
    return resolution.lookups.empty() ? std::string{} : resolution.lookups.front().found;
}

LoadState state_here(const std::string& file) {
    Process process;
    std::error_code error;
    process.exe = file;
    process.cwd = fs::current_path(error).string();
    if (const char* path = std::getenv("LD_LIBRARY_PATH")) {
        process.environment["LD_LIBRARY_PATH"] = path;
    }
    LoadState state = load_state_of(process, {});
    const ElfRead read = read_elf(file);
    if (!read.file || !read.file->executable()) {
        state.executable.clear();  // of a library nothing is mapped before it is asked for
    }
    return state;
}

int libs_of_file(const std::string& file, bool json) {
    const std::vector<DeviceCode> code = device_code_in(file);
    TreeNode root = needed_tree(state_here(file), file);
    if (root.missing() && code.empty()) {
        complain(say("{}: {}", file, root.error));
        return kCouldNotRun;
    }
    if (root.missing()) {  // a cubin, a fatbin or PTX: nothing for ld.so, and no failure
        root = TreeNode{};
        root.name = root.path = file;
    }
    if (json) {
        auto tree = tree_json(root);
        tree["device_code"] = device_code_json(code);
        fmt::print("{}", json_line(tree));
    } else {
        fmt::print("{}{}", render_tree(root, style_for(1)), render_device_code(code));
    }
    return missing_in(root).empty() && fatal_clashes_in(root).empty() ? kNothingFound : kFound;
}

// Files mapped with execute permission, each once: /proc/PID/maps, proc(5).
std::optional<std::vector<std::string>> mapped_files(const std::string& pid) {
    std::ifstream maps{"/proc/" + pid + "/maps"};
    if (!maps) {
        return std::nullopt;
    }
    std::vector<std::string> files;
    std::set<std::string> seen;
    for (std::string line; std::getline(maps, line);) {
        const auto slash = line.find('/');
        const auto space = line.find(' ');
        if (slash != std::string::npos && space != std::string::npos &&
            line.find('x', space) < space + 5) {
            std::string path = line.substr(slash);
            if (seen.insert(path).second) {
                files.push_back(std::move(path));
            }
        }
    }
    return files;
}

// A file that was replaced has "(deleted)" after its path there: no inode is needed to tell.
std::vector<Module> modules_of(const std::vector<std::string>& files) {
    std::vector<Module> modules;
    modules.reserve(files.size());
    for (const std::string& file : files) {
        Module module;
        module.path = file;
        modules.push_back(std::move(module));
    }
    return modules;
}

int libs_of_process(const std::string& pid, bool json) {
    const auto files = mapped_files(pid);
    if (!files || files->empty()) {
        complain(
            say("cannot read the mappings of process {}: {}", pid,
                files ? say("it has none, or they are another user's") : std::strerror(errno)));
        return kCouldNotRun;
    }
    const std::vector<MappedLibrary> libraries = mapped_libraries(modules_of(*files));
    if (json) {
        fmt::print("{}", json_line(mapped_json(libraries)));
    } else if (libraries.empty()) {
        fmt::print("{}\n", spoken(say("process {} has no CUDA library mapped ({} files in all)",
                                      pid, files->size())));
    } else {
        fmt::print("{}", render_mapped(libraries, style_for(1)));
    }
    return kNothingFound;
}

}  // namespace

int libs_command(const LibsOptions& options) {
    const std::string& target = options.target;
    if (!target.empty() && std::all_of(target.begin(), target.end(),
                                       [](unsigned char c) { return std::isdigit(c) != 0; })) {
        return libs_of_process(target, options.json);
    }
    std::optional<std::string> file = file_argument(target);
    if (!file && target.find('/') == std::string::npos) {
        if (const std::string found = by_name(state_here(""), target); !found.empty()) {
            file = found;
        }
    }
    if (!file) {
        complain(say("{} is no file here, no library that ld.so finds, and no pid", target));
        return kCouldNotRun;
    }
    return libs_of_file(*file, options.json);
}

}  // namespace cudiag
