#include "diagnose/build/host_compiler.h"

#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <regex>

#include "diagnose/build/words.h"
#include "diagnose/elf/elf_file.h"

namespace cudiag {
namespace {

namespace fs = std::filesystem;

int major_of(const std::string& release) {
    return std::atoi(release.c_str());
}

// gcc's compilers lie in .../lib/gcc/TARGET/RELEASE/cc1plus (gcc, "libexecsubdir").
bool read_gcc_path(const std::string& path, HostCompiler& compiler) {
    static const std::regex place{R"(/(?:lib|libexec)/gcc/[^/]+/([0-9][0-9.]*)/)"};
    std::smatch match;
    if (!std::regex_search(path, match, place)) {
        return false;
    }
    compiler.kind = "gcc";
    compiler.release = match[1];
    compiler.major = major_of(compiler.release);
    return true;
}

// "x86_64-linux-gnu-gcc-12", "clang-14".
bool read_driver_name(const std::string& path, HostCompiler& compiler) {
    static const std::regex name{R"((?:^|[-/])(gcc|g\+\+|clang|clang\+\+)-([0-9][0-9.]*)$)"};
    std::smatch match;
    if (!std::regex_search(path, match, name)) {
        return false;
    }
    compiler.kind = match[1].str().rfind("clang", 0) == 0 ? "clang" : "gcc";
    compiler.release = match[2];
    compiler.major = major_of(compiler.release);
    return true;
}

// What a compiler says of itself in its bytes, if it is longer than what is known: "12.2.0".
void read_full_release(const std::string& file, HostCompiler& compiler) {
    const std::string text = find_string(file, compiler.release + ".");
    const std::string full = text.substr(0, text.find_first_not_of("0123456789."));
    if (compiler.kind == "gcc" && full.size() > compiler.release.size() + 1 && full.back() != '.') {
        compiler.release = full;
    }
}

}  // namespace

HostCompiler host_compiler_of(const BuildCase& c) {
    HostCompiler compiler;
    std::vector<const BuildStep*> steps{&c.step};
    steps.insert(steps.end(), c.above.begin(), c.above.end());
    for (const BuildStep* step : steps) {
        if (read_gcc_path(step->exe, compiler) || read_driver_name(step->exe, compiler)) {
            compiler.path = step->exe;
            read_full_release(step->exe, compiler);
            break;
        }
    }
    for (const BuildStep* step : steps) {
        HostCompiler driver;
        if (compiler.kind == "gcc" && read_driver_name(step->exe, driver) && driver.kind == "gcc") {
            compiler.path = step->exe;
            break;
        }
    }
    return compiler;
}

std::vector<HostCompiler> installed_up_to(const std::string& kind, int newest,
                                          const std::string& path) {
    std::vector<HostCompiler> found;
    std::vector<std::string> directories = split(path, ':');
    directories.emplace_back("/usr/bin");
    directories.emplace_back("/usr/local/bin");
    const std::regex name{kind == "clang" ? R"(clang-([0-9]+))" : R"(gcc-([0-9]+))"};
    for (const std::string& directory : directories) {
        std::error_code error;
        for (const auto& entry : fs::directory_iterator(directory, error)) {
            std::smatch match;
            const std::string file = entry.path().filename().string();
            if (!std::regex_match(file, match, name) || access(entry.path().c_str(), X_OK) != 0) {
                continue;
            }
            const int major = major_of(match[1]);
            const bool known = std::any_of(found.begin(), found.end(),
                                           [&](const HostCompiler& c) { return c.major == major; });
            if (major <= newest && !known) {
                found.push_back({kind, match[1], entry.path().string(), major});
            }
        }
    }
    std::sort(found.begin(), found.end(),
              [](const HostCompiler& a, const HostCompiler& b) { return a.major > b.major; });
    return found;
}

}  // namespace cudiag
