#include <fmt/core.h>

#include <algorithm>

#include "diagnose/knowledge/knowledge.h"
#include "diagnose/loader/rules.h"

namespace cudiag {
namespace {

// What the machine shows decides the advice: a package can't bring a driver to a machine that has
// no card, nor into a container that was started without one.
std::vector<Fix> driver_fixes(const LoaderCase& c) {
    const Machine& machine = c.machine;
    std::vector<Fix> fixes;
    if (machine.wsl) {
        fixes.push_back(
            {"WSL: the driver is Windows' own; its library lies in /usr/lib/wsl/lib",
             "export LD_LIBRARY_PATH=/usr/lib/wsl/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}",
             false});
    } else if (machine.container == "apptainer") {
        fixes.push_back({"start the container with the host's driver",
                         "apptainer exec --nv IMAGE COMMAND", false});
    } else if (machine.container == "kubernetes") {
        fixes.push_back(
            {"ask for a GPU in the pod: resources.limits must name nvidia.com/gpu", "", false});
    } else if (!machine.container.empty()) {
        fixes.push_back(
            {"start the container with a GPU (needs nvidia-container-toolkit on the host)",
             machine.container == "podman" ? "podman run --device nvidia.com/gpu=all IMAGE"
                                           : "docker run --gpus all IMAGE",
             false});
    } else if (!machine.driver_module.empty() || machine.nvidia_pci) {
        fixes.push_back(
            {"install the driver's user-space library of the same version as the kernel module",
             "sudo apt install nvidia-driver-libs   # Debian; Ubuntu: libnvidia-compute-<branch>",
             false});
    } else {
        fixes.push_back(
            {"run it on a machine with an NVIDIA GPU and driver, or make the program use the CPU",
             "", false});
    }
    return fixes;
}

}  // namespace

std::optional<Finding> loader_missing_driver(const LoaderCase& c) {
    const bool absent = c.error.form == ErrorForm::missing_file;
    const LibraryRelease* release = library_release(file_name(c.error.subject));
    const bool unversioned = file_name(c.error.subject) == "libcuda.so" ||
                             file_name(c.error.subject) == "libnvidia-ml.so";
    if (!absent || ((release == nullptr || !release->driver) && !unversioned)) {
        return std::nullopt;
    }
    const Machine& machine = c.machine;
    const std::string place = machine.container.empty()
                                  ? "on this machine"
                                  : "in this " + machine.container + " container";
    Finding finding = begin_finding(
        c, "loader-missing-driver",
        fmt::format("the NVIDIA driver's library {} is not {}{}", c.error.subject, place,
                    machine.device_nodes.empty() ? ", and there is no /dev/nvidia* either" : ""));
    const Lookup* missing = c.resolution.first_missing();
    finding.evidence["library"] = c.error.subject;
    finding.evidence["searched"] =
        searched_json(missing != nullptr ? missing->steps : std::vector<SearchStep>{});
    finding.evidence["device_nodes"] = machine.device_nodes;
    finding.evidence["driver_module"] = machine.driver_module.empty()
                                            ? "none loaded (no /proc/driver/nvidia)"
                                            : machine.driver_module;
    finding.evidence["container"] = machine.container.empty() ? "none seen" : machine.container;
    finding.evidence["near_misses"] =
        copies_json(find_copies(unversioned ? c.error.subject + ".1" : c.error.subject, c.process,
                                c.modules, c.state.config));
    finding.fixes = driver_fixes(c);
    finding.limits =
        "seen from inside this process only: what the host or the container runtime would give is "
        "not visible here. "
        "The driver comes with the kernel module; pip, conda and the CUDA toolkit do not bring it "
        "(the toolkit's "
        "stubs/libcuda.so is for linking alone).";
    return finding;
}

}  // namespace cudiag
