// The memory cgroup of this process: what `cudiag run` asks before and after a program that dies.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace cudiag {

struct MemoryGroup {
    std::string path;             // below the mount point of its hierarchy
    std::uint64_t limit = 0;      // the lowest in force, bytes; 0: none
    std::uint64_t oom_kills = 0;  // processes of it that the kernel has killed for memory
};

// Of cgroup version 1 or 2; nothing if neither counts. `root` stands before /proc and /sys.
std::optional<MemoryGroup> memory_group(const std::string& root = "");

}  // namespace cudiag
