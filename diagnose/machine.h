// What this machine shows of a GPU driver and of a container, from its file system: device nodes,
// /proc, /run.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace cudiag {

// A device node that this user may not use.
struct RefusedNode {
    std::string path;
    int error = 0;  // errno; EPERM for root comes from the device cgroup alone
};

// A network interface as getifaddrs tells it.
struct Interface {
    std::string name;
    std::vector<std::string> addresses;
    bool up = false;
    bool loopback = false;
};

// A file of NCCL's in /dev/shm.
struct SharedSegment {
    std::string name;  // "nccl-WU88OE"
    std::uint64_t bytes = 0;
    bool mapped = false;  // by a process that is seen from here
};

// /dev/shm, where processes of one host share memory.
struct SharedMemory {
    bool known = false;
    std::uint64_t size = 0, free = 0;  // bytes
    std::vector<SharedSegment> nccl;
};

// setrlimit(2); a limit that is none is the highest number.
struct Limit {
    std::uint64_t soft = UINT64_MAX, hard = UINT64_MAX;
};

struct Machine {
    std::vector<std::string> device_nodes;  // /dev/nvidia*, /dev/dxg
    std::string driver_module;  // first line of /proc/driver/nvidia/version, "" if there is none
    bool nvidia_pci = false;    // a PCI device of vendor 0x10de
    std::string container;      // "docker", "podman", "apptainer", "kubernetes", …; "" outside
    bool wsl = false;
    std::string distribution;  // ID of os-release(5): "debian", "ubuntu"; "" if not known
    std::vector<RefusedNode> refused_nodes;     // of device_nodes
    std::vector<std::string> mig_instances;     // "gpu0/gi1"; empty without MIG
    std::string kernel;                         // its release
    std::string uvm_hmm_disabled;               // parameter of nvidia_uvm: "Y", "N"; "" if not seen
    bool fabric_manager = false;                // it runs, as far as this process can see
    std::uint32_t uid = 0;                      // of whoever looks
    std::string effective_capabilities;         // CapEff of whoever looks, hexadecimal
    std::string profiling_admin_only;           // the driver's RmProfilingAdminOnly: "0", "1"; ""
    std::vector<std::string> card_directories;  // where measured cards may lie; not observed
    std::string device_cgroup;                  // path in the hierarchy that rules over devices
    std::vector<Interface> interfaces;
    SharedMemory shared_memory;
    Limit locked_memory;  // RLIMIT_MEMLOCK, in bytes, of whoever looks: handed on by who starts it
    Limit open_files;     // RLIMIT_NOFILE, likewise
};

// Observes this machine now. `root` is put before every path, for tests.
Machine observe_machine(const std::string& root = "");

}  // namespace cudiag
