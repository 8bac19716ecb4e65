// What can be read of a loaded object from its own memory. For use inside dl_iterate_phdr's
// callback, or on objects that stay loaded. Async-signal-safe: reads only.
#pragma once

#include <link.h>
#include <stdint.h>

namespace cudiag {

// Is this the object that holds the shim?
bool holds_this_code(const struct dl_phdr_info& info);

// Does the object's mapping hold this address?
bool holds_address(const struct dl_phdr_info& info, uintptr_t address);

// Address of an exported function of that name (the default version), or nullptr. By DT_GNU_HASH,
// else DT_HASH (musl).
void* exported_address(const struct dl_phdr_info& info, const char* name);

// DT_SONAME, or nullptr.
const char* soname_of(const struct dl_phdr_info& info);

// Does the object name a library in DT_NEEDED whose SONAME begins so?
bool needs_library(const struct dl_phdr_info& info, const char* beginning);

// A function that the object calls by a slot which ld.so fills.
struct Import {
    const char* name;
    void** slot;
    bool read_only;  // once the object is relocated (PT_GNU_RELRO)
};

// The imports whose names begin so: those of the procedure linkage table, and if there are none,
// those of the global offset table (-fno-plt). Reads relocations, some ten thousand of a large
// object.
void for_each_import(const struct dl_phdr_info& info, const char* beginning,
                     void (*visit)(const Import& import, void* data), void* data);

// Memory size of PT_TLS, 0 if there is none.
uint64_t tls_bytes_of(const struct dl_phdr_info& info);

}  // namespace cudiag
