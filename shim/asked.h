// What each thread asked dlopen for last, until it asks dlerror what became of it. A fixed pool; no
// allocation, no lock.
//
// One call a thread is enough: dlerror tells of the last call that ended, and a call that fails has
// had no other within it (constructors, which may call dlopen themselves, run when all that can
// fail is done). So a text of a failed load is about the call that began last. Tried and given up:
// telling calls apart by their depth on the stack, which takes a load that failed in a helper for
// an earlier one that its caller made itself.
#pragma once

#include <stddef.h>
#include <stdint.h>

namespace cudiag {

struct Asked {
    int mode;
    bool has_name_space;  // by dlmopen
    long name_space;
    uintptr_t caller;  // return address
    char name[1024];   // "" for the program itself; cut if longer, and then not recognised in the
                       // link map
};

// Notes a call of this thread. When 240 threads that have loaded something live still, the calls of
// others go unnoted.
void remember_asked(const char* file, int mode, uintptr_t caller, const long* name_space);

// The last call of this thread, or nullptr if there was none since the last forget_asked.
const Asked* last_asked();
void forget_asked();

// In a fork child: forgets all calls, of all threads.
void forget_all_asked();

}  // namespace cudiag
