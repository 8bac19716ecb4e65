// The kernels, modules and libraries of code that the program was seen to get: what their handles
// are, so that no other handle is ever asked about, and their names, for the recording.
#pragma once

#include <stdint.h>

namespace cudiag {

enum class HandleKind : uint8_t {
    unknown,
    function,  // CUfunction
    kernel,    // CUkernel
    code,      // CUmodule or CUlibrary
};

// cuModuleGetFunction or cuLibraryGetKernel gave `handle` for `name`, out of `code`. Notes the name
// in the recording, once; opens it.
void note_kernel(HandleKind kind, uint64_t handle, uint64_t code, const char* name);

// cuKernelGetFunction gave `function` for `kernel`.
void note_function_of_kernel(uint64_t function, uint64_t kernel);

// A module or library was loaded from code at `image`.
void note_code(uint64_t handle, const void* image);

// What a handle is; unknown if it was not seen, or the table is full.
HandleKind kind_of(uint64_t handle);

// From where the code of a kernel, function, module or library was loaded; 0 if that is not known.
// A number: nothing may be there any more.
uint64_t image_of(uint64_t handle);

// A fork child, or a new recording: names are to be noted again.
void forget_kernels();

}  // namespace cudiag
