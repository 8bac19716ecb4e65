#include "shim/cuda/kernels.h"

#include <stddef.h>
#include <string.h>

#include "record/keep_errno.h"
#include "shim/cuda/launches.h"
#include "shim/session.h"

namespace cudiag {
namespace {

constexpr size_t kSlots = 16384;  // torch with everything it has loads some hundred kernels lazily
constexpr uint64_t kMostNames = 512 << 10;  // bytes; the log holds 1 MiB

// Open addressing, written without a lock: `handle` is claimed first, the rest follows. A reader
// that comes between sees an unknown kind, and asks nothing.
struct Slot {
    uint64_t handle;  // 0: free
    uint64_t parent;  // the code of a kernel, the kernel of a function, the image of code
    uint32_t name;    // a hash; the driver may give a handle again, for another name
    uint32_t kind;
    uint32_t noted;  // in which recording
    uint32_t reserved;
};

Slot slots[kSlots];
uint64_t name_bytes = 0;
uint32_t recording = 1;

template <class T>
T load(const T& from) {
    return __atomic_load_n(&from, __ATOMIC_ACQUIRE);
}

template <class T>
void store(T& to, T value) {
    __atomic_store_n(&to, value, __ATOMIC_RELEASE);
}

// nullptr: not there, and if it was to be claimed, no room.
Slot* slot_of(uint64_t handle, bool claim) {
    constexpr uint64_t kSpread = 0x9e3779b97f4a7c15;
    constexpr size_t kMostTries = 64;
    size_t at = (handle * kSpread) >> 50;
    static_assert(kSlots == size_t{1} << (64 - 50));
    for (size_t i = 0; i < kMostTries && handle != 0; ++i, at = (at + 1) % kSlots) {
        uint64_t found = load(slots[at].handle);
        if (found == handle) {
            return &slots[at];
        }
        if (found == 0 && (!claim ||
                           __atomic_compare_exchange_n(&slots[at].handle, &found, handle, false,
                                                       __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE) ||
                           found == handle)) {
            return claim ? &slots[at] : nullptr;
        }
    }
    return nullptr;
}

uint32_t hash_of(const char* name) {
    uint32_t hash = 2166136261U;  // FNV-1a
    for (; *name != '\0'; ++name) {
        hash = (hash ^ static_cast<unsigned char>(*name)) * 16777619U;
    }
    return hash;
}

// Is there something to say of this slot in this recording?
bool is_news(Slot& slot, HandleKind kind, uint64_t parent, uint32_t name) {
    const bool same = load(slot.noted) == load(recording) && load(slot.name) == name &&
                      load(slot.parent) == parent && load(slot.kind) == static_cast<uint32_t>(kind);
    store(slot.parent, parent);
    store(slot.name, name);
    store(slot.kind, static_cast<uint32_t>(kind));
    store(slot.noted, load(recording));
    return !same;
}

bool has_room(uint64_t bytes) {
    return __atomic_add_fetch(&name_bytes, bytes, __ATOMIC_RELAXED) < kMostNames;
}

}  // namespace

void note_kernel(HandleKind kind, uint64_t handle, uint64_t code, const char* name) {
    const KeepErrno keep;
    Slot* const slot = slot_of(handle, true);
    if (slot == nullptr || name == nullptr || !is_news(*slot, kind, code, hash_of(name)) ||
        !prepare_for_launches()) {
        return;
    }
    const FieldValue fields[] = {FieldValue::of(Field::handle, handle),
                                 FieldValue::of(Field::name, name)};
    expect_first_launch();
    if (has_room(sizeof(EntryHead) + 3 * sizeof(FieldHead) + strlen(name))) {
        (void)note(EntryKind::cuda_function, fields, 2);
    }
}

void note_function_of_kernel(uint64_t function, uint64_t kernel) {
    const KeepErrno keep;
    Slot* const slot = slot_of(function, true);
    if (slot == nullptr || !is_news(*slot, HandleKind::function, kernel, 0) ||
        !prepare_for_launches()) {
        return;
    }
    const FieldValue fields[] = {FieldValue::of(Field::handle, function),
                                 FieldValue::of(Field::of_handle, kernel)};
    expect_first_launch();
    if (has_room(sizeof(EntryHead) + 4 * sizeof(FieldHead))) {
        (void)note(EntryKind::cuda_function, fields, 2);
    }
}

void note_code(uint64_t handle, const void* image) {
    if (Slot* const slot = slot_of(handle, true)) {
        (void)is_news(*slot, HandleKind::code, reinterpret_cast<uintptr_t>(image), 0);
    }
}

HandleKind kind_of(uint64_t handle) {
    const Slot* const slot = slot_of(handle, false);
    return slot == nullptr ? HandleKind::unknown : static_cast<HandleKind>(load(slot->kind));
}

uint64_t image_of(uint64_t handle) {
    for (int depth = 0; depth < 4; ++depth) {
        const Slot* const slot = slot_of(handle, false);
        if (slot == nullptr) {
            return 0;
        }
        handle = load(slot->parent);
        if (static_cast<HandleKind>(load(slot->kind)) == HandleKind::code) {
            return handle;
        }
    }
    return 0;
}

void forget_kernels() {
    __atomic_fetch_add(&recording, 1, __ATOMIC_ACQ_REL);
    name_bytes = 0;
}

}  // namespace cudiag
