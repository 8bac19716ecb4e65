// Appends entries to a run's journal (record/format.h): one system call each, no allocation, no
// lock, nothing kept open. libc only.
#pragma once

#include <cstddef>

#include "record/writer.h"

namespace cudiag {

inline constexpr std::size_t kJournalFields = 300;

// Appends one entry to a file open for appending; false if it was not written whole. At most
// kJournalFields fields; what is beyond is left out. Takes some 20 KiB of stack. Async-signal-safe;
// errno is kept.
bool append_to_journal(int file, EntryKind kind, const FieldValue* fields, std::size_t count);

}  // namespace cudiag
