// The GPU on which a call failed, in words.
#pragma once

#include <optional>
#include <string>

#include "diagnose/facts.h"

namespace cudiag {

// "9.0" for 90; "" for 0.
std::string capability_text(int sm);

// "NVIDIA H200 (compute capability 9.0)"; "the GPU" where it was not asked.
std::string gpu_text(const std::optional<CudaDevice>& device);

// As evidence: gpu, compute_capability.
void add_gpu(const std::optional<CudaDevice>& device, nlohmann::ordered_json& evidence);

}  // namespace cudiag
