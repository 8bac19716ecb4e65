// What the shim and libcudiag-cupti.so are to each other. The shim loads the library into a process
// that is to be profiled (CUDIAG_PROFILE) before CUDA comes into it, so that its exports stand
// before those of libcupti, and calls these functions, which it finds by name.
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "record/writer.h"

namespace cudiag {

// What the library may ask of the shim; the functions stay valid as long as the process lives.
struct CuptiHost {
    // Appends to the profile. Any thread, CUPTI's own as well.
    bool (*note)(EntryKind kind, const FieldValue* fields, size_t count);
    // The real dlopen: a reference of our own would need the glibc of the build.
    void* (*open)(const char* file, int mode);
    uint64_t driver_version;  // as cuDriverGetVersion gives it, 0: not known
};

}  // namespace cudiag

extern "C" {

// Has CUPTI record what the GPU does from now on, until cudiag_cupti_end. True if it does; else
// there is a profile_lacks. `launches`: how many the process has made so far. One thread at a time.
__attribute__((visibility("default"))) bool cudiag_cupti_begin(const cudiag::CuptiHost* host,
                                                               uint64_t launches);

// Takes what CUPTI still holds and ends it. What the GPU has not finished by now is not recorded.
// False, and nothing done, while another client records: taking its buffer from CUPTI would have it
// think that nothing happened; but for the `last` time. Leaves the process (cuptiFinalize) if
// nobody else ever used CUPTI, this release can, and it is not the last time.
__attribute__((visibility("default"))) bool cudiag_cupti_end(uint64_t launches, bool last);

// In a fork child: nothing of CUPTI's works there.
__attribute__((visibility("default"))) void cudiag_cupti_forget();
}
