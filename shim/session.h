// The recording of this process: opened lazily, at the first thing worth noting, in the directory
// of the run.
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "record/writer.h"

namespace cudiag {

// off: CUDIAG=off. idle: nothing recorded yet. open: writing. given_up: could not record; the
// reason was told or is not worth telling. Moved by settings_read (once, in the constructor) and by
// open_session (any thread); a fork child goes back to idle at its first use. All transitions are
// in session.cpp.
enum class SessionState : uint8_t { off, idle, opening, open, given_up };

enum class Printing : uint8_t { normal, all, off };

// Reads CUDIAG* and remembers the environment as it is now; called once, by the constructor.
void read_settings();

SessionState session_state();
Printing printing();

// Opens the recording if that was not done yet; false if it can't be. Not async-signal-safe (reads
// /proc). Any thread.
bool open_session();

// Appends to the open recording. False if there is none.
bool note(EntryKind kind, const FieldValue* fields, size_t count);

// Writes the list of mapped objects if it changed since the last one; gives the number to refer to
// it by.
uint64_t note_modules();

// Certain breakage was recorded: the file stays whatever the exit status is.
void note_breakage();
bool breakage_noted();

// Is this process the one that prints for its run? Only after open_session.
bool is_root();

// The directory of this process's run (it may not exist); valid for ever. Walks /proc at first use.
const char* run_directory();

// True in a child made by vfork, which shares its parent's memory: there, nothing may be changed.
bool in_vfork_child();

// Removes the recording of this process, and the run's directory if that leaves it empty.
void discard_session();

// Marks how the process ends.
void mark_end(EndHow how, int status);

}  // namespace cudiag
