#include "diagnose/memory_group.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>

namespace cudiag {
namespace {

namespace fs = std::filesystem;

// The number behind `name` in a file of "name number" lines; of a file with one word, name is "".
std::optional<std::uint64_t> number_in(const fs::path& file, const std::string& name) {
    std::ifstream stream{file};
    std::string word;
    while (name.empty() || stream >> word) {
        std::uint64_t number = 0;
        if (name.empty() || word == name) {
            return stream >> number ? std::optional{number} : std::nullopt;
        }
        stream.ignore(4096, '\n');
    }
    return std::nullopt;
}

// The path behind the last colon of the line for this controller: "4:cpu,memory:/x", "0::/x".
std::optional<std::string> path_of(const std::string& groups, const std::string& controller) {
    std::ifstream stream{groups};
    for (std::string line; std::getline(stream, line);) {
        const auto first = line.find(':');
        const auto second = line.find(':', first + 1);
        if (first == std::string::npos || second == std::string::npos) {
            continue;
        }
        const std::string named = "," + line.substr(first + 1, second - first - 1) + ",";
        if (controller.empty() ? named == ",," : named.find("," + controller + ",") != named.npos) {
            return line.substr(second + 1);
        }
    }
    return std::nullopt;
}

// In a container the path may be the host's, and the mount point the container's own group.
fs::path directory_of(const fs::path& mount, const std::string& path, const char* file) {
    const fs::path own = mount / fs::path{path}.relative_path();
    std::error_code error;
    return fs::exists(own / file, error) ? own : mount;
}

}  // namespace

std::optional<MemoryGroup> memory_group(const std::string& root) {
    constexpr std::uint64_t kUnlimited = std::uint64_t{1} << 62;  // v1: LONG_MAX less a page
    const std::string groups = root + "/proc/self/cgroup";
    MemoryGroup group;
    std::optional<std::uint64_t> kills;
    if (const auto first = path_of(groups, "memory")) {
        const fs::path directory =
            directory_of(root + "/sys/fs/cgroup/memory", *first, "memory.oom_control");
        kills = number_in(directory / "memory.oom_control", "oom_kill");
        group.limit = number_in(directory / "memory.stat", "hierarchical_memory_limit").value_or(0);
        group.path = *first;
    } else if (const auto second = path_of(groups, "")) {
        const fs::path mount = root + "/sys/fs/cgroup";
        fs::path directory = directory_of(mount, *second, "memory.events");
        kills = number_in(directory / "memory.events", "oom_kill");
        for (; directory.string().size() >= mount.string().size();
             directory = directory.parent_path()) {
            const std::uint64_t limit = number_in(directory / "memory.max", "").value_or(0);
            group.limit =
                limit != 0 && (group.limit == 0 || limit < group.limit) ? limit : group.limit;
        }
        group.path = *second;
    }
    if (!kills) {
        return std::nullopt;
    }
    group.oom_kills = *kills;
    group.limit = group.limit >= kUnlimited ? 0 : group.limit;
    return group;
}

}  // namespace cudiag
