// The recording of this process: opened lazily, at the first thing worth noting, in the directory
// of the run.
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "record/writer.h"

namespace cudiag {

// unstarted: the constructor has not run yet; the first hook does its work. off: CUDIAG=off, or a
// privileged process. idle: nothing recorded yet. opening: a thread is at it. open: writing.
// given_up: could not record, or all is over. Every transition is in session.cpp; who calls for
// one: lifecycle.cpp (begin, fork child, end), any thread (open_session), exec.
enum class SessionState : uint8_t { unstarted, off, idle, opening, open, given_up };

enum class Printing : uint8_t { normal, all, off };

// Reads CUDIAG* of the environment as it was remembered: unstarted -> off or idle.
void read_settings();

// Begins the shim if nobody has, and notices a fork. One load or two.
SessionState session_state();
Printing printing();

// Opens the recording if that was not done yet; false if it can't be. Not async-signal-safe (reads
// /proc). Any thread.
bool open_session();

// Appends to the open recording. False if there is none.
bool note(EntryKind kind, const FieldValue* fields, size_t count);

// The rings of this process (Writer::add_rings): opens the recording and adds them, once. False if
// there are none.
bool open_rings();

// A ring for the calling thread and the number of its records; nullptr if there are none. The ring
// is valid while hot_state.recording is what it was.
RingHead* claim_ring(uint32_t* records);

// The name of this process's recording in the run's directory, "" if there is none.
const char* recording_name();

// The page of stream progress in the recording; nullptr if none is open.
ProgressSlot* progress_slots();

// Certain breakage was seen: the recording stays whatever the exit status is. If there can be none,
// says so in one line, once, in the root.
void note_breakage();
bool breakage_noted();

// Is this process the one that prints for its run? Walks /proc at first use.
bool is_root();

// Removes the recording of this process, and the run's directory if that leaves it empty. The
// session may be opened again, unless this is the `last` of it.
void discard_session(bool last);

// Marks how the process ends.
void mark_end(EndHow how, int status);

// In a fork child: leaves the parent's recording alone; the child opens its own.
void forget_session();

}  // namespace cudiag
