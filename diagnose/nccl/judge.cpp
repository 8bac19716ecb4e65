#include "diagnose/nccl/rules.h"

namespace cudiag {

std::optional<Finding> nccl_failed(const NcclCase& c) {
    using NcclRule = std::optional<Finding> (*)(const NcclCase&);
    constexpr NcclRule kRules[] = {nccl_duplicate_gpu, nccl_no_interface, nccl_shm_too_small,
                                   nccl_hang,          nccl_version_mix,  nccl_remote_error,
                                   nccl_cuda_error,    nccl_system_error};
    NcclCase by_result = c;
    by_result.cause = nccl_cause(c.result);
    for (const NcclCase* each : {&c, static_cast<const NcclCase*>(&by_result)}) {
        for (const NcclRule rule : kRules) {
            if (each->cause == nullptr) {
                break;  // an internal error or a wrong use, and no words that are known
            }
            if (auto finding = rule(*each)) {
                return finding;
            }
        }
    }
    return std::nullopt;
}

}  // namespace cudiag
