// The begin of the shim in a process, its life across fork, and the end of the process by whichever
// way it comes.
#pragma once

#include "record/format.h"

namespace cudiag {

// Does the constructor's work; later calls do nothing. By the constructor, or by the first hook
// where a library's own constructor calls one earlier.
void begin();

// Marks the end; keeps or removes the recording; in the root of a failed run, has it explained.
// Called once by the way that ends the process; does nothing in a vfork child.
void finish(EndHow how, int status);

// A child of this process died by a signal (status as wait(2) gives it).
void note_death(int child, int status);

// Python is at its end: notes the exception that ended it, if there is one and the program has to
// do with CUDA or with a build. On Python's main thread.
void note_exception_at_end();

// The image is about to be replaced; `replaces` is false where that may well fail, so that nothing
// recorded may be given up.
void note_exec(bool replaces);

}  // namespace cudiag
