// The little that the command reads from /proc about a process.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace cudiag {

// Field 22 of /proc/PID/stat (proc(5)): start time in clock ticks since boot; nothing if there is
// no such process or it is a zombie. With the pid it names a process for good.
std::optional<std::uint64_t> start_ticks_of(std::int32_t pid);

// Command line of a process that runs, NUL-separated in /proc/PID/cmdline; empty if it is gone.
std::vector<std::string> command_line_of(std::int32_t pid);

// Environment that a process that runs was started with; empty if it is gone or somebody else's.
std::map<std::string, std::string> environment_of(std::int32_t pid);

}  // namespace cudiag
