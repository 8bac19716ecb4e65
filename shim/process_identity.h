// Who this process is and which process is the root of its run, by /proc. Raw system calls only; no
// allocation.
#pragma once

#include <stddef.h>
#include <stdint.h>

namespace cudiag {

struct ProcessIdentity {
    int32_t pid, ppid, root_pid;
    uint64_t start_ticks, root_start_ticks;
};

// Reads /proc/PID/stat of this process and of its ancestors as far as they run under the shim.
// Costs some tens of microseconds.
ProcessIdentity identify_process();

// Reads at most `size` - 1 bytes of a file into `to` and ends it with NUL; the count, or -1. errno
// is lost.
long read_file(const char* path, char* to, size_t size);

// Does the text of at most 1023 bytes stand anywhere in the file? errno is lost.
bool file_holds(const char* path, const char* text);

// The base name of the executable of a process is one of the shells and bare launchers that start
// other programs.
bool is_launcher(const char* base_name);

}  // namespace cudiag
