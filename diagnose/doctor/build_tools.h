// What a build of a CUDA extension would use here, found as torch.utils.cpp_extension finds it, and
// what the compilers themselves say of it when they are only asked.
#pragma once

#include "diagnose/doctor/facts.h"

namespace cudiag {

// _find_cuda_home() of torch/utils/cpp_extension.py (2.1 to 2.13): CUDA_HOME, else CUDA_PATH, else
// two directories above the nvcc of PATH, else /usr/local/cuda if that exists.
CudaHome cuda_home_of(const Variables& environment);

// The flags by which torch has nvcc compile for the architectures of TORCH_CUDA_ARCH_LIST; those of
// one that every nvcc of its CUDA knows where that is not set, since then the GPUs decide.
std::vector<std::string> architecture_flags(const TorchInstall& torch,
                                            const Variables& environment);

// `python` and `torch` of `facts` are there already.
BuildTools build_tools(const DoctorFacts& facts);

// What `nvcc --dryrun` printed, in the parts that matter here. For tests.
struct NvccPlan {
    std::vector<std::string> host;   // the words of the first command: the host compiler's
    std::string path;                // PATH as nvcc sets it for its tools
    std::string cicc_directory;      // "" where it does not say
    HostCompiler compiler;           // kind and release, as nvcc tells its front end
    std::vector<std::string> tools;  // that it calls by name: "cudafe++", "ptxas"
    std::string complaint;           // "nvcc fatal   : …", or what went before it
};

NvccPlan read_nvcc_plan(const std::string& printed);

// The directories that gcc and clang print with -v, in their order.
std::vector<std::string> include_directories_in(const std::string& printed);

}  // namespace cudiag
