// Calls that a library was linked to make: ld.so has bound them, and where a binding *is* the
// function of a library that we know, it is put to that function's wrapper. Nothing is exported for
// it (docs/decisions/0008-nccl-entries.md), and the caller's own binding says which of several
// copies of the library it calls.
#pragma once

#include <stddef.h>
#include <stdint.h>

namespace cudiag {

// Of one kind of library so many copies in a process are told apart: each function has a wrapper
// for each.
inline constexpr size_t kCopies = 4;

struct Family {
    const char* soname;    // how the SONAME begins: "libnccl", also of "libnccl-3f2a01bc.so.2"
    const char* imported;  // how the names of the functions begin
    size_t functions;
    const char* (*name)(size_t function);
    void* (*wrapper)(size_t copy, size_t function);  // nullptr: it is only asked by us
    void** real;  // [kCopies * functions]; nullptr: that copy has none, or is not there
};

// Looks at the objects that have come since the last time, and puts their bindings. Two loads of
// the loader's counters if none have. Takes the loader's lock (dl_iterate_phdr); no allocation.
// `at_start`: all objects there are relocated, those whose bindings are read-only as well.
enum class When : uint8_t { at_start, later };
void rebind(When when);

// The wrapper for a function that a program got from dlsym under this name, or the address itself.
void* stand_in_for(const Family& family, const char* name, void* address);

// In a fork child: what another thread was at is not under way here.
void forget_rebinding();

}  // namespace cudiag
