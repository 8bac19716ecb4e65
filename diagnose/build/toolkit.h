// A CUDA toolkit as it lies on this machine: where a CUDA_HOME leads, and what is there.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace cudiag {

struct Toolkit {
    std::string home;     // what CUDA_HOME would be: the directory above bin
    std::string nvcc;     // home/bin/nvcc, "" if it is not there
    std::string release;  // "13.0", "" if nothing there tells
    std::string told_by;  // the file that told the release
};

// What is at `home`. Reads nvcc's own strings, then cuda.h; runs nothing.
Toolkit toolkit_at(const std::string& home);

// That of an nvcc, by its path; links are followed to find the directory.
Toolkit toolkit_of_nvcc(const std::string& nvcc);

// CUDA_VERSION of a cuda.h in an include directory, as a release: 13000 -> "13.0". "" without one.
std::string release_of_headers(const std::string& include_directory);

// Every toolkit with an nvcc on this machine that a user may mean: those of PATH, /usr/local/cuda*,
// /opt/cuda*, the conda prefix, and the wheels of the site-packages directories. The newest first.
std::vector<Toolkit> toolkits_near(const std::string& path,
                                   const std::vector<std::string>& site_packages,
                                   const std::string& conda_prefix);

}  // namespace cudiag
