// A core dump of the GPU when a kernel fails, with CUDIAG_COREDUMP=1: written by the driver itself,
// into the run's directory. The driver then ends the process (abort): with skip_abort, which would
// let it go on, the error is swallowed and every later call succeeds (measured on an H200, driver
// 580).
#pragma once

namespace cudiag {

// Sets what the driver reads at its start (CUDA_ENABLE_COREDUMP_ON_EXCEPTION and its like, "GPU
// core dump support" of the CUDA-GDB manual), unless the program's user has. The only variables
// that the shim ever sets; called once, from begin, before the program has threads.
void ask_for_core_dumps();

// Notes where the dump would be, in the open recording.
void note_core_dump();

}  // namespace cudiag
