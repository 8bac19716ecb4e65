// Who this process is and which process is the root of its run, by /proc. Raw system calls only; no
// allocation.
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "shim/build_tools.h"

namespace cudiag {

struct ProcessIdentity {
    int32_t pid, ppid, root_pid;
    uint64_t start_ticks, root_start_ticks;
    int32_t parent_pid;  // the nearest ancestor under the shim that is no launcher; 0: none
    BuildRole parent_role;
    bool below_host_compiler;  // the root is gcc or the like: nobody's build but its own
};

// Reads /proc/PID/stat of this process and of its ancestors as far as they run under the shim. The
// root is the topmost of them that is no launcher. Where there is none but this process and it is a
// step of a build, it is the topmost shell that runs a script: a script may try a compiler for no
// more than to see it fail (configure), so that its own status tells what failed.
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
