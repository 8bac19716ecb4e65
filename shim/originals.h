// The real functions behind our entries, found by walking the loaded objects' own symbol tables.
// Never by dlsym: it would clear the program's pending dlerror, and it may allocate.
#pragma once

#include <signal.h>
#include <stddef.h>
#include <stdint.h>

namespace cudiag {

struct Originals {
// NOLINTNEXTLINE(bugprone-macro-parentheses): parts of a declaration, which can bear none
#define CUDIAG_ORIGINAL(name, result, parameters) result(*name) parameters;
#include "shim/originals.def"
#undef CUDIAG_ORIGINAL
};

// The functions as found; an entry is nullptr if no loaded object has it. Walks the link map on
// first use (in begin), which takes the loader's lock; after that async-signal-safe, and safe in a
// fork child, where a lock may be held for ever.
const Originals& originals();

// The same after another look for what was missing: libdl.so.2 may come late (glibc < 2.34). For
// hooks of the loader's own functions, which take its lock anyway.
const Originals& originals_with_loader();

// First definition of a symbol in link-map order among all objects but our own; nullptr if there is
// none. Default versions only. Takes the loader's lock.
void* find_symbol(const char* name);

}  // namespace cudiag
