// What is known of the errors of a GPU that ran: data from knowledge/gpu_faults.json.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace cudiag {

struct FaultRemedy {
    std::string text, command;  // {argv} is to be filled in
};

// An error after which the process cannot use the GPU any more.
struct GpuFault {
    int code = 0;
    std::string title;  // what the kernel did, whose name follows
    std::vector<FaultRemedy> remedies;
    std::string source;
};

const GpuFault* gpu_fault(int code);
std::vector<const GpuFault*> all_gpu_faults();

// What the name of a kernel that ended with an error tells of the cause.
struct KernelHint {
    std::string name, pattern;
    std::vector<int> codes;
    std::string text, command, source;
};

// Of a demangled name; nullptr if nothing is known.
const KernelHint* kernel_hint(std::string_view kernel, int code);
std::vector<const KernelHint*> all_kernel_hints();

// As knowledge_problems(), of this file.
std::vector<std::string> gpu_fault_problems();

}  // namespace cudiag
