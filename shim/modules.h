// The list of mapped objects, in link-map order.
#pragma once

#include <stddef.h>
#include <stdint.h>

namespace cudiag {

// Writes the list of mapped objects if it changed since the last one; gives the number to refer to
// it by. Once lists have taken most of the log, the last one has to do.
uint64_t note_modules();

// Starts the count of snapshots anew: for a recording of its own.
void forget_modules();

// Path of the module that holds the address and the address's offset in it; false if none does.
// `path` is cut to `size`.
bool module_holding(uintptr_t address, char* path, size_t size, uint64_t* offset);

// Is an object mapped that dlopen(name) would have given: of that path, file name or SONAME, or the
// same file?
bool is_mapped(const char* name);

// Is the file mapped at all, in whichever namespace? Of a path as the loader writes it.
bool is_mapped_anywhere(const char* path);

// Is this how the loader names the program itself in its texts (argv[0])?
bool is_program(const char* name);

// Is a library of CUDA mapped (shim/modules.cpp lists their names)?
bool has_cuda_library();

}  // namespace cudiag
