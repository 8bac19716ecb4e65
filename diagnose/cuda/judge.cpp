#include "diagnose/cuda/rules.h"
#include "diagnose/cuda/running_rules.h"

namespace cudiag {

std::optional<Finding> cuda_cannot_start(const Process& process, const Machine& machine) {
    using CudaRule = std::optional<Finding> (*)(const CudaCase&);
    // From the particular to the general.
    constexpr CudaRule kRules[] = {container_device_revoked, cuda_no_driver, cuda_driver_too_old,
                                   cuda_device_unavailable};
    const std::optional<CudaCase> c = cuda_case_of(process, machine);
    if (!c) {
        return std::nullopt;
    }
    for (const CudaRule rule : kRules) {
        if (auto finding = rule(*c)) {
            return finding;
        }
    }
    return std::nullopt;
}

std::optional<Finding> cuda_gave_an_error(const Process& process) {
    using RunningRule = std::optional<Finding> (*)(const RunningCase&);
    constexpr RunningRule kRules[] = {cuda_context_destroyed, cuda_async_error,
                                      cuda_no_kernel_image,   cuda_ptx_rejected,
                                      cuda_launch_config,     cuda_out_of_memory};
    const std::optional<RunningCase> c = running_case_of(process);
    if (!c) {
        return std::nullopt;
    }
    for (const RunningRule rule : kRules) {
        if (auto finding = rule(*c)) {
            return finding;
        }
    }
    return std::nullopt;
}

}  // namespace cudiag
