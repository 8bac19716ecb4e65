// What this machine shows of a GPU driver and of a container, from its file system: device nodes,
// /proc, /run.
#pragma once

#include <string>
#include <vector>

namespace cudiag {

struct Machine {
    std::vector<std::string> device_nodes;  // /dev/nvidia*, /dev/dxg
    std::string driver_module;  // first line of /proc/driver/nvidia/version, "" if there is none
    bool nvidia_pci = false;    // a PCI device of vendor 0x10de
    std::string container;      // "docker", "podman", "apptainer", "kubernetes", …; "" outside
    bool wsl = false;
};

// Observes this machine now. `root` is put before every path, for tests.
Machine observe_machine(const std::string& root = "");

}  // namespace cudiag
