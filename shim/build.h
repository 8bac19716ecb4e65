// What this process tells of a build: that it is one of its steps, how it ended, what failed it,
// and that it waits for a lock.
#pragma once

#include "record/format.h"

namespace cudiag {

// If this process is a step or a coordinator of a build: notes its start. For the constructor.
void begin_step();

// Notes its end. Does nothing in other processes, in a fork child and in a vfork child.
void end_step(EndHow how, int status);

// Was begin_step's answer yes?
bool is_step();

// Notes the programs that this process could not start, or that ended badly, in the recording or in
// the journal of the run, if there is one. For the end of a process that failed. A shell that ends
// with 126 or 127 is noted itself: it did not find, or could not run, what it was asked for.
void note_asked_programs(EndHow how, int status);

// Notes that a child died by a signal, with what the kernel says of memory, if the run has a
// journal.
bool note_killed_child(int child, int status);

// A file could not be made because it is there: O_CREAT and O_EXCL, EEXIST. If it is called `lock`,
// that is noted, and the command started that watches the wait.
void note_lock(const char* path);

// A file called build.ninja was opened by a program that is no build tool: what it says is checked
// while the build runs.
void note_build_file(const char* path);

// In a fork child: what was noted was its parent's.
void forget_step();

}  // namespace cudiag
