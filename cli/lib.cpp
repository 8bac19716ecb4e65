#include <fmt/core.h>
#include <unistd.h>

#include <filesystem>

#include "cli/commands.h"
#include "diagnose/say.h"

namespace cudiag {

// The places of an installation, each found from the other side too (find_command in
// shim/explain.cpp).
std::string shim_path() {
    std::error_code error;
    const std::filesystem::path self = std::filesystem::read_symlink("/proc/self/exe", error);
    for (const char* place : {"libcudiag.so", "../lib/libcudiag.so", "../lib64/libcudiag.so",
                              "../lib/" CUDIAG_TRIPLET "/libcudiag.so"}) {
        const auto path = (self.parent_path() / place).lexically_normal();
        if (std::filesystem::is_regular_file(path, error)) {
            return path.string();
        }
    }
    return {};
}

int lib_command() {
    const std::string path = shim_path();
    if (path.empty()) {
        complain(say("libcudiag.so is not beside this command, nor in ../lib"));
        return kCouldNotRun;
    }
    fmt::print("{}\n", path);
    return kNothingFound;
}

}  // namespace cudiag
