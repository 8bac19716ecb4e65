#include "diagnose/cuda/rules.h"
#include "diagnose/loader/case.h"
#include "diagnose/say.h"

namespace cudiag {

// The runtime says "insufficient" (35) both of a driver that is too old and of none at all.
// Programs that only count the GPUs say "none" (100) of both; who has a driver is told that by it.
std::optional<Finding> cuda_no_driver(const CudaCase& c) {
    constexpr int kInsufficientDriver = 35;
    constexpr int kNoDevice = 100;
    const bool none = c.driver_version ? *c.driver_version == 0 : c.driver.path.empty();
    const bool counted_none = c.code == kNoDevice && c.driver.path.empty();
    if (!counted_none && (c.code != kInsufficientDriver || !none)) {
        return std::nullopt;
    }
    const Machine& machine = c.machine;
    const std::string place = machine.container.empty()
                                  ? say("on this machine")
                                  : say("in this {} container", machine.container);
    const bool there = !c.driver.path.empty();
    Finding finding = begin_finding(
        c, "cuda-no-driver",
        there ? say("CUDA found no driver that it could use: {} gave no version", c.driver.path)
              : say("there is no NVIDIA driver {}: no libcuda.so.1{}", place,
                    machine.device_nodes.empty() ? say(", and no /dev/nvidia* either") : ""));
    finding.evidence["library"] = there ? c.driver.path : "libcuda.so.1";
    finding.evidence["searched"] = searched_json(c.driver.lookup.steps);
    finding.evidence["device_nodes"] = machine.device_nodes;
    finding.evidence["driver_module"] = machine.driver_module.empty()
                                            ? say("none loaded (no /proc/driver/nvidia)")
                                            : machine.driver_module;
    finding.evidence["container"] =
        machine.container.empty() ? say("none seen") : machine.container;
    add_runtime(c, finding.evidence);
    if (!there) {
        finding.fixes = fixes_for_missing_driver(machine);
    }
    finding.limits +=
        std::string{finding.limits.empty() ? "" : "; "} +
        say("seen from inside this process only: what the host or the container runtime would give "
            "is "
            "not visible here. ") +
        (counted_none
             ? say("That no GPU was found is the program's own word, without the code that "
                   "CUDA gave it. ")
             : say("Error 35 speaks of a version that is insufficient; its version is 0, so "
                   "none was found, and nothing is too old. ")) +
        say("pip, conda and the CUDA toolkit bring no driver");
    return finding;
}

}  // namespace cudiag
