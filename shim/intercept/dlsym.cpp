// dlsym: every name but those of the driver's and NCCL's functions goes to the real one by a jump
// (dl.S), so that RTLD_NEXT and RTLD_DEFAULT mean what they mean to the true caller.
#include <dlfcn.h>

#include "record/keep_errno.h"
#include "shim/bindings.h"
#include "shim/cuda/driver.h"
#include "shim/nccl/calls.h"
#include "shim/originals.h"
#include "shim/session.h"

extern "C" {

// Where the entry in dl.S jumps to without asking; nullptr until the first call.
__attribute__((visibility("hidden"))) void* cudiag_real_dlsym = nullptr;
}

namespace cudiag {
namespace {

// What a program gets if no loaded object has the function (a weak reference, glibc < 2.34 without
// libdl.so.2).
void* no_symbol(void* /*handle*/, const char* /*name*/) {
    return nullptr;
}

// Asked with a handle, the loader does not look at the caller: this may be a call. One call of the
// real function, whose error is the program's.
void* ask_for_driver_call(void* handle, const char* name) {
    return stand_in_for(name, originals().dlsym(handle, name));
}

void* ask_for_nccl_call(void* handle, const char* name) {
    return stand_in_for(nccl_functions(), name, originals().dlsym(handle, name));
}

}  // namespace
}  // namespace cudiag

extern "C" {

// Called by the entry in dl.S, which jumps to what this returns: of names that begin with "cu" and
// a capital or with "ncc", and of the first call.
void* cudiag_enter_dlsym(void* handle, const char* name) {
    const cudiag::KeepErrno keep;
    auto* const dlsym = cudiag::originals_with_loader().dlsym;
    if (dlsym == nullptr) {
        return reinterpret_cast<void*>(&cudiag::no_symbol);
    }
    __atomic_store_n(&cudiag_real_dlsym, reinterpret_cast<void*>(dlsym), __ATOMIC_RELEASE);
    const bool caller_counts = handle == RTLD_DEFAULT || handle == RTLD_NEXT;
    const bool is_nccl = !caller_counts && name != nullptr && cudiag::is_nccl_call(name);
    if (caller_counts || name == nullptr || (!is_nccl && !cudiag::is_driver_call(name)) ||
        cudiag::session_state() == cudiag::SessionState::off) {
        return reinterpret_cast<void*>(dlsym);
    }
    return reinterpret_cast<void*>(is_nccl ? &cudiag::ask_for_nccl_call
                                           : &cudiag::ask_for_driver_call);
}
}
