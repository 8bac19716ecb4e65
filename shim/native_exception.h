// The C++ exception that nobody caught, when std::terminate ends the process of it.
#pragma once

#include <stdint.h>

namespace cudiag {

// To be called by abort, with the address that it returns to: if that lies in libstdc++, the
// exception of this thread is noted, with its type and, of a std::exception, with what(). The text
// is asked for as std::terminate's own handler has just done to print it. Opens the recording of a
// process that has to do with CUDA. Not async-signal-safe: an abort from elsewhere is left alone.
void note_native_exception(uintptr_t caller);

}  // namespace cudiag
