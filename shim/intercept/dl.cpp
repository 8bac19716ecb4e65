// dlopen, dlmopen, dlerror: what was asked for is noted at the call, what became of it is learnt
// when the program asks dlerror. A failure whose text nobody reads is a probe, and is forgotten.
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "shim/explain.h"
#include "shim/exports.h"
#include "shim/guard.h"
#include "shim/modules.h"
#include "shim/originals.h"
#include "shim/python.h"
#include "shim/session.h"

namespace cudiag {
namespace {

// A dlopen that may still be asked about. The pool lies in .bss: pages that nobody touched cost
// nothing.
struct Asked {
    uint32_t owner;  // tid; 0: free
    int mode;
    uintptr_t stack;   // stack pointer at the call: a constructor's own dlopen lies deeper than the
                       // one that runs it
    uintptr_t caller;  // return address
    long name_space;
    bool has_name_space;
    bool cut;      // the name was longer than the slot
    Asked* outer;  // of the same thread
    char name[4096];
};

constexpr size_t kSlots = 64;
Asked slots[kSlots];
thread_local Asked* innermost = nullptr;

uint32_t own_tid() {
    return static_cast<uint32_t>(syscall(SYS_gettid));
}

bool thread_is_gone(uint32_t tid) {
    return syscall(SYS_tgkill, syscall(SYS_getpid), tid, 0) != 0;
}

Asked* claim_slot() {
    const uint32_t tid = own_tid();
    for (int round = 0; round < 2; ++round) {
        for (Asked& slot : slots) {
            uint32_t owner = __atomic_load_n(&slot.owner, __ATOMIC_RELAXED);
            // The second round takes the slots of threads that ended without asking.
            const bool takable =
                owner == 0 || (round == 1 && owner != tid && thread_is_gone(owner));
            if (takable && __atomic_compare_exchange_n(&slot.owner, &owner, tid, false,
                                                       __ATOMIC_ACQUIRE, __ATOMIC_RELAXED)) {
                return &slot;
            }
        }
    }
    return nullptr;  // 64 threads are loading at once: this call goes unnoted
}

void release(Asked* slot) {
    __atomic_store_n(&slot->owner, 0, __ATOMIC_RELEASE);
}

// Calls at or below this depth have returned (or were left by an exception or longjmp).
void drop_finished(uintptr_t stack) {
    while (innermost != nullptr && innermost->stack <= stack) {
        Asked* finished = innermost;
        innermost = finished->outer;
        release(finished);
    }
}

void remember(const char* file, int mode, uintptr_t caller, uintptr_t stack,
              const long* name_space) {
    const KeepErrno keep;
    if (session_state() == SessionState::off || session_state() == SessionState::given_up) {
        return;
    }
    drop_finished(stack);
    if (file == nullptr || *file == '\0') {
        return;  // the program itself: can't fail for want of a file
    }
    Asked* slot = claim_slot();
    if (slot == nullptr) {
        return;
    }
    slot->mode = mode;
    slot->stack = stack;
    slot->caller = caller;
    slot->has_name_space = name_space != nullptr;
    slot->name_space = name_space == nullptr ? 0 : *name_space;
    const size_t length = strnlen(file, sizeof slot->name - 1);
    slot->cut = file[length] != '\0';
    memcpy(slot->name, file, length);
    slot->name[length] = '\0';
    slot->outer = innermost;
    innermost = slot;
}

// The call that dlerror is asked about: made from about the same depth. A helper that calls dlopen
// and leaves dlerror to its own caller lies a little deeper; a constructor's nested dlopen lies
// deeper by ld.so's own frames.
Asked* call_asked_about(uintptr_t stack) {
    Asked* best = nullptr;
    uintptr_t nearest = ~uintptr_t{0};
    for (Asked* slot = innermost; slot != nullptr; slot = slot->outer) {
        const uintptr_t distance = slot->stack > stack ? slot->stack - stack : stack - slot->stack;
        if (distance < nearest) {
            nearest = distance;
            best = slot;
        }
    }
    return best;
}

bool begins_with(const char* text, size_t length, const char* prefix) {
    const size_t size = strlen(prefix);
    return length >= size && memcmp(text, prefix, size) == 0;
}

bool ends_with(const char* text, const char* end) {
    const size_t length = strlen(text);
    const size_t size = strlen(end);
    return length >= size && strcmp(text + length - size, end) == 0;
}

const char* base_of(const char* path, size_t* length) {
    const char* base = path;
    for (const char* c = path; c < path + *length; ++c) {
        if (*c == '/') {
            base = c + 1;
        }
    }
    *length -= static_cast<size_t>(base - path);
    return base;
}

// Breakage, not a probe: what was asked for is there, and something that it needs is not, or it is
// no good itself. Everybody probes for the driver, and for libfoo.so, which may be ld's script
// (invalid ELF header).
bool is_breakage(const char* asked, const char* text) {
    const char* colon = strstr(text, ": ");
    if (colon == nullptr) {
        return false;
    }
    const auto length = static_cast<size_t>(colon - text);
    size_t base_length = length;
    const char* base = base_of(text, &base_length);
    if (begins_with(base, base_length, "libcuda.so") ||
        begins_with(base, base_length, "libnvidia-")) {
        return false;
    }
    const bool itself = length == strlen(asked) && memcmp(text, asked, length) == 0;
    if (strchr(asked, '/') != nullptr) {
        return !itself || (!ends_with(text, "No such file or directory") &&
                           !ends_with(text, "invalid ELF header"));
    }
    const bool same_name = base_length == strlen(asked) && memcmp(base, asked, base_length) == 0;
    const bool wants_more = strstr(colon, "undefined symbol") != nullptr ||
                            strstr(colon, "version `") != nullptr ||
                            strstr(colon, "static TLS") != nullptr;
    return !itself && (!same_name || wants_more);
}

void note_failure(EntryKind kind, const Asked* asked, const char* text) {
    if (!open_session()) {
        return;
    }
    const uint64_t snapshot = note_modules();
    FieldValue fields[8 + kPythonFields];
    size_t count = 0;
    char caller[4096];
    uint64_t offset = 0;
    bool breakage = false;
    fields[count++] = FieldValue::of(Field::text, text);
    fields[count++] = FieldValue::of(Field::snapshot, snapshot);
    if (asked != nullptr) {
        breakage = kind == EntryKind::dlopen_failed && is_breakage(asked->name, text);
        (void)module_holding(asked->caller, caller, sizeof caller, &offset);
        fields[count++] = FieldValue::of(Field::name, asked->name);
        fields[count++] =
            FieldValue::of(Field::flags, static_cast<uint64_t>(static_cast<unsigned>(asked->mode)));
        fields[count++] = FieldValue::of(Field::caller, caller);
        fields[count++] = FieldValue::of(Field::caller_offset, offset);
        if (asked->has_name_space) {
            fields[count++] =
                FieldValue::of(Field::link_namespace, static_cast<uint64_t>(asked->name_space));
        }
    }
    if (breakage) {
        fields[count++] = FieldValue::of(Field::certain, uint64_t{1});
    }
    PythonFrames frames;
    count += frames.collect(fields + count);
    (void)note(kind, fields, count);
    if (breakage) {
        note_breakage();
        explain_early();
    }
}

void settle(const char* text, uintptr_t stack) {
    const KeepErrno keep;
    if (session_state() == SessionState::off || session_state() == SessionState::given_up ||
        in_vfork_child()) {
        return;
    }
    Asked* asked = call_asked_about(stack);
    const bool about_a_symbol = strstr(text, "undefined symbol") != nullptr;
    if (about_a_symbol) {
        // dlopen's text for a library that lacks a symbol and dlsym's for a symbol that a library
        // lacks are the same: if the library is there, the load went well and the lookup failed.
        const bool loaded = asked == nullptr || is_mapped(asked->name);
        note_failure(loaded ? EntryKind::dlsym_failed : EntryKind::dlopen_failed, asked, text);
    } else if (asked != nullptr) {
        note_failure(EntryKind::dlopen_failed, asked, text);
    }
    if (asked != nullptr) {
        drop_finished(asked->stack);
    }
}

// What a program gets if no loaded object has the function: an answer instead of a crash.
void* nothing_there() {
    return nullptr;
}

}  // namespace
}  // namespace cudiag

extern "C" {

void* cudiag_enter_dlopen(const char* file, int mode, uintptr_t caller, uintptr_t stack) {
    cudiag::remember(file, mode, caller, stack, nullptr);
    const auto real = cudiag::originals().dlopen;
    return real != nullptr ? reinterpret_cast<void*>(real)
                           : reinterpret_cast<void*>(&cudiag::nothing_there);
}

void* cudiag_enter_dlmopen(long name_space, const char* file, int mode, uintptr_t caller,
                           uintptr_t stack) {
    cudiag::remember(file, mode, caller, stack, &name_space);
    const auto real = cudiag::originals().dlmopen;
    return real != nullptr ? reinterpret_cast<void*>(real)
                           : reinterpret_cast<void*>(&cudiag::nothing_there);
}

CUDIAG_EXPORT char* dlerror() {
    const auto real = cudiag::originals().dlerror;
    if (real == nullptr) {
        return nullptr;
    }
    char* text = real();
    if (text != nullptr) {
        cudiag::settle(text, reinterpret_cast<uintptr_t>(__builtin_frame_address(0)));
    }
    return text;
}
}
