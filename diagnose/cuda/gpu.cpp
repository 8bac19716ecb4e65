#include "diagnose/cuda/gpu.h"

#include <fmt/core.h>

#include "diagnose/say.h"

namespace cudiag {

std::string capability_text(int sm) {
    return sm == 0 ? std::string{} : fmt::format("{}.{}", sm / 10, sm % 10);
}

std::string gpu_text(const std::optional<CudaDevice>& device) {
    if (!device || device->name.empty()) {
        return say("the GPU");
    }
    const std::string capability = capability_text(device->compute_capability());
    return capability.empty() ? device->name
                              : say("{} (compute capability {})", device->name, capability);
}

void add_gpu(const std::optional<CudaDevice>& device, nlohmann::ordered_json& evidence) {
    const std::string capability =
        device ? capability_text(device->compute_capability()) : std::string{};
    evidence["gpu"] = device && !device->name.empty() ? device->name : say("not known");
    evidence["compute_capability"] = capability.empty() ? say("not known") : capability;
}

}  // namespace cudiag
