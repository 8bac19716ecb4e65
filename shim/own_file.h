// Where libcudiag.so itself lies, and so what belongs to it.
#pragma once

#include <stddef.h>

namespace cudiag {

// Its path by /proc/self/maps: the link map holds the name as LD_PRELOAD gave it, which may be
// relative. False if it does not fit or is not known. No allocation. One thread at a time.
bool own_path(char* path, size_t size);

// The path of a file by its place below the directory of libcudiag.so ("libcudiag-cupti.so"),
// which may not exist. Otherwise as own_path.
bool own_neighbour(const char* place, char* path, size_t size);

}  // namespace cudiag
