// The list of mapped objects, in link-map order.
#pragma once

#include <stddef.h>
#include <stdint.h>

namespace cudiag {

// Starts the count of snapshots anew: in a fork child, which records into a file of its own.
void forget_modules();

// Path of the module that holds the address and the address's offset in it; false if none does.
// `path` is cut to `size`.
bool module_holding(uintptr_t address, char* path, size_t size, uint64_t* offset);

// Is an object mapped that dlopen(name) would have given: of that path, file name or SONAME, or the
// same file?
bool is_mapped(const char* name);

// Is a library of CUDA mapped (shim/modules.cpp lists their names)?
bool has_cuda_library();

}  // namespace cudiag
