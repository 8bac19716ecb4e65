// The newest files that a build tool opened, and those that it could not open: what tells which
// header or library was missing. In memory only, until the tool fails.
#pragma once

#include <stddef.h>

#include "record/writer.h"

namespace cudiag {

// From now on note_open keeps what it is told. Called once, before threads.
void watch_opens();

// Is anything kept? One load.
bool opens_are_watched();

// Notes a path, as the program gave it. No allocation, no lock; any thread; errno is the caller's.
void note_open(const char* path, bool could_be_opened);

// What is kept, as a field that points into static memory. For the end of the process.
FieldValue opens_field();

}  // namespace cudiag
