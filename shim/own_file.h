// Where libcudiag.so itself lies, and so what belongs to it.
#pragma once

#include <stddef.h>

namespace cudiag {

// The path of a file by its place below the directory of libcudiag.so ("../bin/cudiag"), which may
// not exist; false if it does not fit or the directory is not known. Reads /proc/self/maps; no
// allocation. One thread at a time.
bool own_neighbour(const char* place, char* path, size_t size);

}  // namespace cudiag
