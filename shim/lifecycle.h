// The end of the process, by whichever way it comes.
#pragma once

#include "record/format.h"

namespace cudiag {

// Marks the end; keeps or removes the recording; in the root of a failed run, has it explained.
// Called once by the way that ends the process; does nothing in a vfork child.
void finish(EndHow how, int status);

}  // namespace cudiag
