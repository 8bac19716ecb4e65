// The driver's functions (driver.def) and what stands in for them. An answer of dlsym or
// cuGetProcAddress is replaced only if it is the very address under which libcuda exports that
// function: names do not tell signatures (cuGetProcAddress("cuCtxSynchronize") gives
// cuCtxSynchronize_v2 from CUDA 13 on).
#pragma once

#include <stddef.h>
#include <stdint.h>

namespace cudiag {

// Which results of a function are errors worth noting. CUDA_SUCCESS and CUDA_ERROR_NOT_READY never
// are; not_capture: nor is that a stream is being captured (900 to 908), which a query may well be
// for; none: asking whether there is a function of some name is what it is for.
enum class Errors : uint8_t { all, not_capture, none };

// What is noted of a function beyond its errors. _ptsz: its stream 0 is the thread's own.
enum class Role : uint8_t {
    call,
    start,  // the driver has answered
    resolver,
    context_made,
    context_gone,
    context_wait,  // what was launched before is done
    stream_wait,
    stream_wait_ptsz,
    load_file,  // code, for errors
    load,
    lookup,  // the name of a kernel
    lookup_kernel,
    function_of_kernel,
    allocation,  // its size, for errors
    launch,
    launch_ptsz,
    launch_ex,
    launch_ex_ptsz,
    graph_launch,
    graph_launch_ptsz,
    graph_made,
    stream_made,  // for CUDIAG_TRACK
    stream_gone,
    capture_begun,
    capture_ended,
};

struct DriverCall {
    const char* name;
    Errors errors;
    Role role;
};

// Is this the name of a function in driver.def? Of names that begin with "cu" and a capital.
bool is_driver_call(const char* name);

// What to give a program that asked for this name and got this address: the wrapper if it is
// libcuda's own function, else the address itself. Takes the loader's lock when a libcuda is seen
// for the first time.
void* stand_in_for(const char* name, void* address);

// Was a libcuda seen?
bool driver_is_known();

// The file of the libcuda behind the wrappers, its version as cuDriverGetVersion gives it (0 if it
// gives none), and its words for an error ("" if it has none). False if no libcuda was seen.
bool driver_path(char* path, size_t size);
uint64_t driver_version();
const char* driver_words(int error);

}  // namespace cudiag
