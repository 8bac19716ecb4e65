// The rules of a GPU that ran and gave an error: each takes a case and gives perhaps a finding. A
// rule's file bears its slug's name. What each may not conclude is in its finding's `limits` and in
// explain/SLUG.md.
#pragma once

#include <optional>

#include "diagnose/cuda/running.h"

namespace cudiag {

std::optional<Finding> cuda_context_destroyed(const RunningCase& c);
std::optional<Finding> cuda_async_error(const RunningCase& c);
std::optional<Finding> cuda_no_kernel_image(const RunningCase& c);
std::optional<Finding> cuda_ptx_rejected(const RunningCase& c);
std::optional<Finding> cuda_launch_config(const RunningCase& c);
std::optional<Finding> cuda_out_of_memory(const RunningCase& c);

// Beside cuda_async_error: objects of the process that can launch what the shim does not see
// (docs/decisions/0005-no-exports-of-the-drivers-names.md). Reads the files of what was mapped.
std::optional<Finding> cuda_unseen_launches(const Process& process);

// Code that the driver compiled for long, as it had none for the GPU; of any process, also one that
// is well. Reads the files of the code and the driver's cache.
std::optional<Finding> cuda_ptx_jit_slow(const Process& process);

// The first of them that speaks.
std::optional<Finding> cuda_gave_an_error(const Process& process);

}  // namespace cudiag
