#include "diagnose/loader/driver_library.h"

#include "diagnose/knowledge/knowledge.h"
#include "diagnose/loader/case.h"
#include "diagnose/say.h"

namespace cudiag {

DriverLibrary driver_library_of(const LoadState& state, const std::vector<Module>& modules) {
    DriverLibrary driver;
    std::string runtime;
    for (const Module& module : modules) {
        const std::string family = library_family(file_name(module.path));
        if (family == "cuda") {
            driver.path = module.path;
            driver.mapped = true;
        } else if (family == "cudart") {
            runtime = module.path;
        }
    }
    if (driver.path.empty() && runtime.empty()) {
        return driver;
    }
    const std::string asked = driver.mapped ? file_name(driver.path) : "libcuda.so.1";
    driver.lookup = resolve_needed(state, asked, {runtime.empty() ? state.executable : runtime});
    if (!driver.mapped) {
        driver.path = driver.lookup.found;
    }
    return driver;
}

std::vector<Fix> fixes_for_missing_driver(const Machine& machine) {
    std::vector<Fix> fixes;
    if (machine.wsl) {
        fixes.push_back(
            {say("WSL: the driver is Windows' own; its library lies in /usr/lib/wsl/lib"),
             "export LD_LIBRARY_PATH=/usr/lib/wsl/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}",
             false});
    } else if (machine.container == "apptainer") {
        fixes.push_back(
            {say("start the container with the host's driver (apptainer exec --nv ...)"), "",
             false});
    } else if (machine.container == "kubernetes") {
        fixes.push_back({say("ask for a GPU in the pod: resources.limits must name nvidia.com/gpu"),
                         "", false});
    } else if (!machine.container.empty()) {
        fixes.push_back(
            {say("start the container with a GPU ({} ...; needs nvidia-container-toolkit on "
                 "the host)",
                 machine.container == "podman" ? "podman run --device nvidia.com/gpu=all"
                                               : "docker run --gpus all"),
             "", false});
    } else if (!machine.driver_module.empty() || machine.nvidia_pci) {
        fixes.push_back(
            {say("install the driver's user-space library of the same version as the kernel module "
                 "(Debian: nvidia-driver-libs; Ubuntu: libnvidia-compute of the module's branch)"),
             machine.distribution == "debian" ? "sudo apt install nvidia-driver-libs" : "", false});
    } else {
        fixes.push_back({say("run it on a machine with an NVIDIA GPU and driver, or make the "
                             "program use the CPU"),
                         "", false});
    }
    return fixes;
}

}  // namespace cudiag
