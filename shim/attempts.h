// The programs that this process tried to start and that failed it: could not be started, or ended
// with a status other than 0. In memory only, until somebody asks. A vfork child shares the memory,
// so that what happened in it is known in its parent.
#pragma once

#include <stdint.h>

#include "record/format.h"

namespace cudiag {

// exec is about to be tried by a child of this process, or by itself. Any thread; a vfork child.
void note_attempt(const char* path, int32_t pid);

// It failed. A search through PATH that the caller does itself is one attempt, of as many places.
void note_failed_attempt(const char* path, int32_t pid, int error);

// A child ended with a status other than 0, as wait(2) gives it.
void note_failed_child(int32_t pid, int status);

// Path of the program that the process last became, or "" if that is not known. Valid until
// overwritten.
const char* attempted_by(int32_t pid);

// Calls `each` with the failures noted, the oldest first, and forgets them: pid, path ("" if
// unknown), errno or 0, status, and the number of places where it could not be started.
void take_failures(void (*each)(int32_t pid, const char* path, int error, int status,
                                uint64_t count));

}  // namespace cudiag
