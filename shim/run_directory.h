// The directory of this process's run: where it lies, and opening it so that nobody else's
// directory is mistaken for it. Not thread-safe but for readers of a known one; reads /proc; no
// allocation.
#pragma once

#include "shim/process_identity.h"

namespace cudiag {

// Who this process is, and whose run it belongs to. Walks /proc at first use.
const ProcessIdentity& identity();

// Path of the run's directory, which may not exist; valid until the process forks. Walks /proc at
// first use.
const char* run_directory();

// Makes the directory (0700) and opens it: a descriptor, or -1 with errno. In /tmp no link is
// followed, and every directory of ours must be our own.
int make_run_directory();

// Opens it if it is there: a descriptor, or -1 with errno.
int open_run_directory();

// A directory of our own (0700) in a shared one: made if it is not there, and opened; a descriptor,
// or -1 with errno. No link is followed, and nobody else's directory is taken.
int make_own_directory(const char* parent, const char* name);

// In a fork child: another process, perhaps of another run.
void forget_run_directory();

}  // namespace cudiag
