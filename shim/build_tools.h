// Which programs are the steps of a build, and which of them start a build by themselves: by the
// base name of the executable.
#pragma once

#include <stddef.h>

namespace cudiag {

// not_one: neither. step: a compiler, an assembler, a linker, or one of their drivers: what it does
// was asked for by a program above it. coordinator: starts steps (ninja, make, cmake).
enum class BuildRole : unsigned char { not_one, step, coordinator };

// "x86_64-linux-gnu-g++-12", "ld.bfd", "cudafe++": prefixes of a target and version suffixes are
// allowed for. Async-signal-safe.
BuildRole build_role(const char* base_name);

// nvcc itself.
bool is_cuda_compiler(const char* base_name);

// Base name of this process's executable into `buffer`; "" if it cannot be read. One system call.
const char* own_program(char* buffer, size_t size);

// One of the shells.
bool is_shell(const char* base_name);

}  // namespace cudiag
