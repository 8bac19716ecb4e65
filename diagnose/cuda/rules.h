// The rules of a CUDA that cannot start: each takes a case and gives perhaps a finding. A rule's
// file bears its slug's name. What each may not conclude is in its finding's `limits` and in
// explain/SLUG.md.
#pragma once

#include <optional>

#include "diagnose/cuda/case.h"

namespace cudiag {

std::optional<Finding> container_device_revoked(const CudaCase& c);
std::optional<Finding> cuda_no_driver(const CudaCase& c);
std::optional<Finding> cuda_driver_too_old(const CudaCase& c);
std::optional<Finding> cuda_device_unavailable(const CudaCase& c);

// The first of them that speaks.
std::optional<Finding> cuda_cannot_start(const Process& process, const Machine& machine);

}  // namespace cudiag
