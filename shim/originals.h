// The real functions behind our entries, found by walking the loaded objects' own symbol tables.
// Never by dlsym: it would clear the program's pending dlerror, and it may allocate.
#pragma once

#include <signal.h>
#include <stddef.h>
#include <stdint.h>

namespace cudiag {

struct Originals {
#define CUDIAG_ORIGINAL(name, result, parameters) result(*name) parameters;
#include "shim/originals.def"
#undef CUDIAG_ORIGINAL
};

// The functions as found; an entry is nullptr while no loaded object has it (libdl.so.2 may come
// late, glibc < 2.34). Walks the link map on first use and again while something is missing. Any
// thread; takes the loader's lock, no other.
const Originals& originals();

// First definition of a symbol in link-map order among all objects but our own; nullptr if there is
// none. Default versions only. Takes the loader's lock.
void* find_symbol(const char* name);

}  // namespace cudiag
