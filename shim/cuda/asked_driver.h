// The driver as the shim asks it: its real functions, never our wrappers.
#pragma once

#include <stddef.h>
#include <stdint.h>

struct dl_phdr_info;  // NOLINT(readability-identifier-naming): glibc's

namespace cudiag {

// A handle of the driver's as it wants it; the recording knows them as numbers.
inline void* handle_of(uint64_t number) {
    // NOLINTNEXTLINE(performance-no-int-to-ptr): never followed here
    return reinterpret_cast<void*>(number);
}

struct AskedDriver {
// NOLINTNEXTLINE(bugprone-macro-parentheses): parts of a declaration, which can bear none
#define CUDIAG_ASKED(name, parameters) int(*name) parameters;
#include "shim/cuda/asked_driver.def"
#undef CUDIAG_ASKED
};

// Functions are null until a libcuda was seen, and where it lacks them. They are written before the
// first wrapper is handed out, and again only if that libcuda was unloaded and another one loaded.
const AskedDriver& asked_driver();

// The functions of this libcuda, inside dl_iterate_phdr's callback; and from now on they are it.
AskedDriver asked_driver_in(const dl_phdr_info& libcuda);
void set_asked_driver(const AskedDriver& found);

}  // namespace cudiag
