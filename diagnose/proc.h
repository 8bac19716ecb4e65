// The little that the command reads from /proc about a process.
#pragma once

#include <cstdint>
#include <optional>

namespace cudiag {

// Field 22 of /proc/PID/stat (proc(5)): start time in clock ticks since boot; nothing if there is
// no such process or it is a zombie. With the pid it names a process for good.
std::optional<std::uint64_t> start_ticks_of(std::int32_t pid);

}  // namespace cudiag
