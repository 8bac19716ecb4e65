// Remedies that several build rules share: development packages, and the environment that leads a
// build to a toolkit.
#pragma once

#include <string>
#include <vector>

#include "diagnose/build/case.h"
#include "diagnose/knowledge/toolchain.h"

namespace cudiag {

// Commands that install headers, and libraries to link with, of these owners for a CUDA release;
// the package manager that the toolkit itself came from first.
std::vector<Fix> fixes_by_packages(const BuildCase& c,
                                   const std::vector<const HeaderOwner*>& owners,
                                   const std::string& cuda_release);

// Leads the build to another toolkit: "export CUDA_HOME=…".
Fix fix_by_cuda_home(const Toolkit& toolkit);

// Installs a whole compiler of this CUDA release where there is none.
std::vector<Fix> fixes_by_toolkit(const BuildCase& c, const std::string& cuda_release);

// Installs the package as it is, but built anew against what the environment has.
std::string anew(const BuildCase& c, const Package& package);

// Sets TORCH_CUDA_ARCH_LIST to those of the GPUs at hand; compute_cap is a field of nvidia-smi
// since driver 510 ("9.0", one line for each GPU).
inline constexpr const char* kArchitecturesOfTheseGpus =
    "export TORCH_CUDA_ARCH_LIST=\"$(nvidia-smi --query-gpu=compute_cap --format=csv,noheader | "
    "sort -u | paste -sd ';')\"";

}  // namespace cudiag
