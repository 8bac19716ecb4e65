#include "diagnose/machine.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sys/resource.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cerrno>
#include <filesystem>
#include <fstream>
#include <set>
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

// access(2) asks the device cgroup as open(2) does, and wakes no device.
std::vector<RefusedNode> refused_of(const std::string& root,
                                    const std::vector<std::string>& nodes) {
    std::vector<RefusedNode> refused;
    for (const std::string& node : nodes) {
        const std::string path = root + node;
        std::error_code error;
        if (fs::is_character_file(path, error) && access(path.c_str(), R_OK | W_OK) != 0) {
            refused.push_back({node, errno});
        }
    }
    return refused;
}

std::vector<std::string> mig_instances_of(const std::string& root) {
    std::vector<std::string> instances;
    std::error_code error;
    const std::string top = root + "/proc/driver/nvidia/capabilities";
    for (const auto& gpu : fs::directory_iterator(top, error)) {
        const std::string name = gpu.path().filename().string();
        std::error_code absent;
        for (const auto& instance : fs::directory_iterator(gpu.path() / "mig", absent)) {
            const std::string file = instance.path().filename().string();
            if (name.rfind("gpu", 0) == 0 && file.rfind("gi", 0) == 0) {
                instances.push_back(name + "/" + file);
            }
        }
    }
    std::sort(instances.begin(), instances.end());
    return instances;
}

bool runs(const std::string& root, const std::string& program) {
    std::error_code error;
    for (const auto& process : fs::directory_iterator(root + "/proc", error)) {
        const std::string name = process.path().filename().string();
        if (std::isdigit(static_cast<unsigned char>(name.front())) != 0 &&
            first_line(process.path().string() + "/comm") == program) {
            return true;
        }
    }
    return false;
}

// Of version 1 the hierarchy with `devices` in it, else the only one of version 2.
std::string device_cgroup_of(const std::string& root) {
    std::ifstream file{root + "/proc/self/cgroup"};
    std::string unified;
    for (std::string line; std::getline(file, line);) {
        const auto first = line.find(':');
        const auto second = line.find(':', first + 1);
        if (first == std::string::npos || second == std::string::npos) {
            continue;
        }
        const std::string controllers = "," + line.substr(first + 1, second - first - 1) + ",";
        if (controllers.find(",devices,") != std::string::npos) {
            return line.substr(second + 1);
        }
        if (line.rfind("0::", 0) == 0) {
            unified = line.substr(second + 1);
        }
    }
    return unified;
}

std::string address_of(const sockaddr& address) {
    std::array<char, INET6_ADDRSTRLEN> text{};
    const void* from = nullptr;
    if (address.sa_family == AF_INET) {
        from = &reinterpret_cast<const sockaddr_in&>(address).sin_addr;
    } else if (address.sa_family == AF_INET6) {
        from = &reinterpret_cast<const sockaddr_in6&>(address).sin6_addr;
    }
    if (from == nullptr ||
        inet_ntop(address.sa_family, from, text.data(), text.size()) == nullptr) {
        return {};
    }
    return text.data();
}

std::vector<Interface> interfaces_here() {
    std::vector<Interface> interfaces;
    ifaddrs* list = nullptr;
    if (getifaddrs(&list) != 0) {
        return interfaces;
    }
    for (const ifaddrs* each = list; each != nullptr; each = each->ifa_next) {
        auto known =
            std::find_if(interfaces.begin(), interfaces.end(),
                         [&](const Interface& other) { return other.name == each->ifa_name; });
        if (known == interfaces.end()) {
            known = interfaces.insert(known,
                                      Interface{.name = each->ifa_name,
                                                .addresses = {},
                                                .up = (each->ifa_flags & IFF_UP) != 0,
                                                .loopback = (each->ifa_flags & IFF_LOOPBACK) != 0});
        }
        const std::string address =
            each->ifa_addr == nullptr ? std::string{} : address_of(*each->ifa_addr);
        if (!address.empty()) {
            known->addresses.push_back(address);
        }
    }
    freeifaddrs(list);
    return interfaces;
}

// Names of NCCL's segments that any process has mapped: proc(5), maps. A deleted one is shown with
// a mark after its name.
std::set<std::string> mapped_segments(const std::string& root) {
    constexpr std::string_view kSegment = "/dev/shm/nccl-";
    std::set<std::string> mapped;
    std::error_code error;
    for (const auto& process : fs::directory_iterator(root + "/proc", error)) {
        const std::string pid = process.path().filename().string();
        if (std::isdigit(static_cast<unsigned char>(pid.front())) == 0) {
            continue;
        }
        std::ifstream maps{process.path() / "maps"};
        for (std::string line; std::getline(maps, line);) {
            const auto at = line.find(kSegment);
            if (at != std::string::npos) {
                const auto name = at + std::string_view{"/dev/shm/"}.size();
                mapped.insert(line.substr(name, line.find(' ', name) - name));
            }
        }
    }
    return mapped;
}

SharedMemory shared_memory_of(const std::string& root) {
    SharedMemory memory;

    struct statvfs about {};

    const std::string directory = root + "/dev/shm";
    if (statvfs(directory.c_str(), &about) != 0) {
        return memory;
    }
    memory.known = true;
    memory.size = static_cast<std::uint64_t>(about.f_blocks) * about.f_frsize;
    memory.free = static_cast<std::uint64_t>(about.f_bavail) * about.f_frsize;
    std::error_code error;
    for (const auto& file : fs::directory_iterator(directory, error)) {
        const std::string name = file.path().filename().string();
        std::error_code gone;
        if (name.rfind("nccl-", 0) == 0 && file.is_regular_file(gone)) {
            const std::uintmax_t bytes = file.file_size(gone);
            memory.nccl.push_back({.name = name, .bytes = gone ? 0 : bytes, .mapped = false});
        }
    }
    if (!memory.nccl.empty()) {  // reading every process's mappings is worth it then alone
        const std::set<std::string> mapped = mapped_segments(root);
        for (SharedSegment& segment : memory.nccl) {
            segment.mapped = mapped.count(segment.name) > 0;
        }
    }
    std::sort(memory.nccl.begin(), memory.nccl.end(),
              [](const auto& a, const auto& b) { return a.name < b.name; });
    return memory;
}

Limit limit_of(decltype(RLIMIT_NOFILE) what) {
    rlimit limit{};
    const auto number = [](rlim_t value) { return value == RLIM_INFINITY ? UINT64_MAX : value; };
    return getrlimit(what, &limit) == 0
               ? Limit{.soft = number(limit.rlim_cur), .hard = number(limit.rlim_max)}
               : Limit{};
}

// os-release(5): a value may stand in quotes.
std::string distribution_of(const std::string& root) {
    std::ifstream file{root + "/etc/os-release"};
    for (std::string line; std::getline(file, line);) {
        if (line.rfind("ID=", 0) == 0) {
            line.erase(0, 3);
            line.erase(std::remove_if(line.begin(), line.end(),
                                      [](char c) { return c == '"' || c == '\''; }),
                       line.end());
            return line;
        }
    }
    return {};
}

// What follows "key: " in a file of such lines; "" if it has none.
std::string value_in(const std::string& path, const std::string& key) {
    std::ifstream file{path};
    for (std::string line; std::getline(file, line);) {
        if (line.rfind(key + ":", 0) == 0) {
            const auto begin = line.find_first_not_of(" \t", key.size() + 1);
            return begin == std::string::npos ? "" : line.substr(begin);
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
    machine.distribution = distribution_of(root);
    machine.refused_nodes = refused_of(root, machine.device_nodes);
    machine.mig_instances = mig_instances_of(root);
    machine.kernel = first_line(root + "/proc/sys/kernel/osrelease");
    machine.uvm_hmm_disabled =
        first_line(root + "/sys/module/nvidia_uvm/parameters/uvm_disable_hmm");
    machine.fabric_manager = runs(root, "nv-fabricmanage");  // the kernel keeps 15 bytes of a name
    machine.uid = geteuid();
    machine.effective_capabilities = value_in(root + "/proc/self/status", "CapEff");
    machine.profiling_admin_only =
        value_in(root + "/proc/driver/nvidia/params", "RmProfilingAdminOnly");
    machine.device_cgroup = device_cgroup_of(root);
    machine.interfaces = interfaces_here();
    machine.shared_memory = shared_memory_of(root);
    machine.locked_memory = limit_of(RLIMIT_MEMLOCK);
    machine.open_files = limit_of(RLIMIT_NOFILE);
    return machine;
}

}  // namespace cudiag
