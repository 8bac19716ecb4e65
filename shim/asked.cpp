#include "shim/asked.h"

#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace cudiag {
namespace {

struct Slot {
    bool waits;  // dlerror was not asked yet
    Asked asked;
};

// The pool lies in .bss: pages that nobody touched cost nothing.
constexpr uint32_t kSlots = 240;
Slot slots[kSlots];
uint32_t owners[kSlots];  // tid; 0: free
uint32_t used = 0;        // slots ever taken: those behind are free
thread_local Slot* own = nullptr;

uint32_t own_tid() {
    return static_cast<uint32_t>(syscall(SYS_gettid));
}

bool thread_is_gone(uint32_t tid) {
    return syscall(SYS_tgkill, syscall(SYS_getpid), tid, 0) != 0;
}

Slot* take(uint32_t index, uint32_t from, uint32_t tid) {
    if (!__atomic_compare_exchange_n(&owners[index], &from, tid, false, __ATOMIC_ACQUIRE,
                                     __ATOMIC_RELAXED)) {
        return nullptr;
    }
    uint32_t known = __atomic_load_n(&used, __ATOMIC_RELAXED);
    while (known <= index && !__atomic_compare_exchange_n(&used, &known, index + 1, false,
                                                          __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
    }
    return &slots[index];
}

Slot* claim_slot() {
    const uint32_t tid = own_tid();
    for (uint32_t i = 0; i < kSlots; ++i) {
        Slot* slot = __atomic_load_n(&owners[i], __ATOMIC_RELAXED) == 0 ? take(i, 0, tid) : nullptr;
        if (slot != nullptr) {
            return slot;
        }
    }
    // Slots of threads that ended; one of them may have had our number.
    for (uint32_t i = 0; i < kSlots; ++i) {
        const uint32_t owner = __atomic_load_n(&owners[i], __ATOMIC_RELAXED);
        Slot* slot = owner == tid || thread_is_gone(owner) ? take(i, owner, tid) : nullptr;
        if (slot != nullptr) {
            return slot;
        }
    }
    return nullptr;
}

}  // namespace

void remember_asked(const char* file, int mode, uintptr_t caller, const long* name_space) {
    if (own == nullptr) {
        own = claim_slot();
    }
    if (own == nullptr) {
        return;
    }
    Asked& asked = own->asked;
    asked.mode = mode;
    asked.caller = caller;
    asked.has_name_space = name_space != nullptr;
    asked.name_space = name_space == nullptr ? 0 : *name_space;
    const size_t length = file == nullptr ? 0 : strnlen(file, sizeof asked.name - 1);
    memcpy(asked.name, file == nullptr ? "" : file, length);
    asked.name[length] = '\0';
    own->waits = true;
}

const Asked* last_asked() {
    return own != nullptr && own->waits ? &own->asked : nullptr;
}

void forget_asked() {
    if (own != nullptr) {
        own->waits = false;
    }
}

void forget_all_asked() {
    own = nullptr;
    for (uint32_t i = 0; i < used; ++i) {
        owners[i] = 0;
    }
    used = 0;
}

}  // namespace cudiag
