#include "diagnose/machine.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <string_view>
#include <utility>

namespace cudiag {
namespace {

namespace fs = std::filesystem;

std::string first_line(const std::string& path) {
    std::ifstream file{path};
    std::string line;
    std::getline(file, line);
    return line;
}

bool has_nvidia_pci(const std::string& root) {
    std::error_code error;
    for (const auto& device : fs::directory_iterator(root + "/sys/bus/pci/devices", error)) {
        if (first_line(device.path().string() + "/vendor") == "0x10de") {
            return true;
        }
    }
    return false;
}

std::string container_of(const std::string& root) {
    // Marks that the runtimes themselves leave: docker's and podman's files, apptainer's directory,
    // the service account that kubelet mounts.
    constexpr std::pair<const char*, const char*> kMarks[] = {
        {"/.singularity.d", "apptainer"},
        {"/var/run/secrets/kubernetes.io", "kubernetes"},
        {"/run/.containerenv", "podman"},
        {"/.dockerenv", "docker"}};
    std::error_code error;
    for (const auto& [path, name] : kMarks) {
        if (fs::exists(root + path, error)) {
            return name;
        }
    }
    return {};
}

}  // namespace

Machine observe_machine(const std::string& root) {
    Machine machine;
    std::error_code error;
    for (const auto& node : fs::directory_iterator(root + "/dev", error)) {
        const std::string name = node.path().filename().string();
        if (name.rfind("nvidia", 0) == 0 || name == "dxg") {
            machine.device_nodes.push_back("/dev/" + name);
        }
    }
    std::sort(machine.device_nodes.begin(), machine.device_nodes.end());
    machine.driver_module = first_line(root + "/proc/driver/nvidia/version");
    machine.nvidia_pci = has_nvidia_pci(root);
    machine.container = container_of(root);
    machine.wsl = first_line(root + "/proc/version").find("icrosoft") != std::string::npos;
    return machine;
}

}  // namespace cudiag
