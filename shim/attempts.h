// The programs that this process tried to start, as far as they matter if it fails: those that
// could not be started, that ended with a status other than 0, or that build. In memory only, until
// somebody asks. A vfork child shares the memory, so that what happened in it is known in its
// parent.
#pragma once

#include <stdint.h>

#include "record/format.h"

namespace cudiag {

// exec is about to be tried by a child of this process, or by itself; arguments may be nullptr. Any
// thread; a vfork child.
void note_attempt(const char* path, char* const* arguments, int32_t pid);

// It failed. A search through PATH that the caller does itself is one attempt, of as many places.
void note_failed_attempt(const char* path, int32_t pid, int error);

// A child ended with a status other than 0, as wait(2) gives it.
void note_failed_child(int32_t pid, int status);

// Path of the program that the process last became, or "" if that is not known. Valid until
// overwritten.
const char* attempted_by(int32_t pid);

struct Attempt {
    int32_t pid;      // 0: free
    int32_t error;    // errno of an exec that failed
    int32_t status;   // as wait(2) gives it
    uint32_t places;  // where it could not be started
    bool failed;
    char path[232];      // "" if unknown
    char arguments[88];  // of a coordinator of builds, with blanks between them; cut
};

// Stands for the process id of a child that never came to be.
constexpr int32_t kNoChild = -1;

// Calls `each` with the attempts that matter, the oldest first, and forgets them.
void take_attempts(void (*each)(const Attempt& attempt));

}  // namespace cudiag
