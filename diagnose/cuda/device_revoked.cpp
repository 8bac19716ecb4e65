#include <algorithm>
#include <cerrno>
#include <cstring>

#include "diagnose/cuda/rules.h"
#include "diagnose/say.h"

namespace cudiag {
namespace {

// Nodes that every CUDA process needs. A scheduler that keeps jobs to their own GPUs refuses
// /dev/nvidiaN of the others, and that is no fault.
bool needed_by_all(const std::string& node) {
    return node == "/dev/nvidiactl" || node == "/dev/nvidia-uvm";
}

}  // namespace

std::optional<Finding> container_device_revoked(const CudaCase& c) {
    const std::vector<RefusedNode>& refused = c.machine.refused_nodes;
    const auto taken = std::find_if(refused.begin(), refused.end(), [](const RefusedNode& node) {
        return node.error == EPERM && needed_by_all(node.path);
    });
    if (taken == refused.end()) {
        return std::nullopt;
    }
    auto nodes = nlohmann::ordered_json::array();
    for (const RefusedNode& node : refused) {
        nodes.push_back(
            {{"node", node.path}, {"errno", node.error}, {"why", std::strerror(node.error)}});
    }
    Finding finding =
        begin_finding(c, "container-device-revoked",
                      say("{} is there, and the device cgroup lets nobody{} open it", taken->path,
                          c.machine.uid == 0 ? say(", not even root,") : ""));
    finding.evidence["node"] = taken->path;
    finding.evidence["errno"] = taken->error;
    finding.evidence["refused"] = std::move(nodes);
    finding.evidence["uid"] = c.machine.uid;
    finding.evidence["cgroup"] =
        c.machine.device_cgroup.empty() ? say("not seen") : c.machine.device_cgroup;
    finding.evidence["container"] =
        c.machine.container.empty() ? say("none seen") : c.machine.container;
    finding.fixes.push_back(
        {say("restart the container: its devices are allowed anew when it starts"), "", false});
    finding.fixes.push_back(
        {say("for good, on the host: name the devices to the container runtime itself, by CDI "
             "(nvidia-ctk "
             "cdi generate, then docker or podman run --device nvidia.com/gpu=all ...), so that a "
             "reload "
             "of systemd knows of them"),
         "", false});
    finding.limits +=
        std::string{finding.limits.empty() ? "" : "; "} +
        say("whether the nodes were allowed before is not seen from here. If the container worked, "
            "somebody changed the rules on the host since, as systemctl daemon-reload does for "
            "nodes "
            "that were added behind systemd's back; programs that have them open go on. Neither "
            "the "
            "driver nor its packages have to do with it");
    return finding;
}

}  // namespace cudiag
