#include "diagnose/build/toolkit.h"

#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <fstream>
#include <set>

#include "diagnose/build/words.h"
#include "diagnose/elf/elf_file.h"
#include "diagnose/packages/owner.h"

namespace cudiag {
namespace {

namespace fs = std::filesystem;

bool is_program(const std::string& path) {
    std::error_code error;
    return fs::is_regular_file(path, error) && access(path.c_str(), X_OK) == 0;
}

// "release 13.0, V13.0.88" as nvcc --version prints it.
std::string release_in_nvcc(const std::string& nvcc) {
    constexpr std::string_view kBefore = "Cuda compilation tools, release ";
    const std::string text = find_string(nvcc, kBefore);
    const auto at = text.find(kBefore);
    if (at == std::string::npos) {
        return {};
    }
    const std::string rest = text.substr(at + kBefore.size());
    return rest.substr(0, rest.find_first_not_of("0123456789."));
}

}  // namespace

std::string release_of_headers(const std::string& include_directory) {
    std::ifstream file{include_directory + "/cuda.h"};
    constexpr std::string_view kDefine = "#define CUDA_VERSION ";  // cuda.h of every release
    constexpr int kMostLines = 2000;
    std::string line;
    for (int i = 0; i < kMostLines && std::getline(file, line); ++i) {
        if (line.rfind(kDefine, 0) == 0) {
            int number = 0;
            const char* begin = line.data() + kDefine.size();
            const auto [end, error] = std::from_chars(begin, line.data() + line.size(), number);
            if (error == std::errc{} && number >= 1000) {
                return std::to_string(number / 1000) + "." + std::to_string(number % 1000 / 10);
            }
        }
    }
    return {};
}

Toolkit toolkit_at(const std::string& home) {
    Toolkit toolkit;
    toolkit.home = home;
    if (is_program(home + "/bin/nvcc")) {
        toolkit.nvcc = home + "/bin/nvcc";
        std::error_code error;
        const fs::path real = fs::canonical(toolkit.nvcc, error);
        toolkit.release = release_in_nvcc(error ? toolkit.nvcc : real.string());
        toolkit.told_by = toolkit.nvcc;
    }
    if (toolkit.release.empty()) {
        toolkit.release = release_of_headers(home + "/include");
        toolkit.told_by = toolkit.release.empty() ? "" : home + "/include/cuda.h";
    }
    return toolkit;
}

Toolkit toolkit_of_nvcc(const std::string& nvcc) {
    const std::string home = directory_of(directory_of(nvcc));
    Toolkit toolkit = toolkit_at(home);
    if (toolkit.release.empty()) {
        // A link, or a wrapper beside the real one.
        std::error_code error;
        const fs::path real = fs::canonical(nvcc, error);
        if (!error && real != nvcc) {
            toolkit = toolkit_at(real.parent_path().parent_path().string());
        }
    }
    return toolkit;
}

std::vector<Toolkit> toolkits_near(const std::string& path,
                                   const std::vector<std::string>& site_packages,
                                   const std::string& conda_prefix) {
    std::vector<std::string> homes;
    for (const std::string& directory : split(path, ':')) {
        if (is_program(directory + "/nvcc")) {
            homes.push_back(directory_of(directory));
        }
    }
    std::error_code error;
    for (const char* parent : {"/usr/local", "/opt", "/usr/lib"}) {
        for (const auto& entry : fs::directory_iterator(parent, error)) {
            if (entry.path().filename().string().rfind("cuda", 0) == 0) {
                homes.push_back(entry.path().string());
            }
        }
    }
    if (!conda_prefix.empty()) {
        homes.push_back(conda_prefix);
    }
    for (const std::string& site : site_packages) {
        for (const auto& entry : fs::directory_iterator(site + "/nvidia", error)) {
            homes.push_back(entry.path().string());
        }
    }
    std::vector<Toolkit> toolkits;
    std::set<std::string> seen;
    for (const std::string& home : homes) {
        Toolkit toolkit = toolkit_at(home);
        const fs::path real = fs::canonical(home, error);
        if (!toolkit.nvcc.empty() && seen.insert(error ? home : real.string()).second) {
            toolkits.push_back(std::move(toolkit));
        }
    }
    std::stable_sort(toolkits.begin(), toolkits.end(), [](const Toolkit& a, const Toolkit& b) {
        return compare_versions(a.release, b.release) > 0;
    });
    return toolkits;
}

}  // namespace cudiag
