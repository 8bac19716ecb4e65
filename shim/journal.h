// The journal of this process's run (record/format.h): opened for each entry, since a descriptor
// kept open would change the program's numbers.
#pragma once

#include <stddef.h>

#include "record/writer.h"

namespace cudiag {

// Has the run a journal? Walks /proc at first use. One system call otherwise.
bool has_journal();

// Appends an entry; `make` makes the journal where there is none. False where that is not possible,
// and for what only fills a tree (`make` again) once the journal is very long. Async-signal-safe
// once run_directory() is known and without `make`.
bool write_journal(EntryKind kind, const FieldValue* fields, size_t count, bool make);

// Has this process written to it?
bool journal_was_written();

// Removes the journal, and the run's directory if that leaves it empty: the root ended well.
void remove_journal();

}  // namespace cudiag
