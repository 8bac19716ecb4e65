// dlopen, dlmopen, dlerror: what was asked for is noted at the call, what became of it is learnt
// when the program asks dlerror. A failure whose text nobody reads is a probe, and is forgotten.
#include <fcntl.h>
#include <link.h>
#include <string.h>
#include <unistd.h>

#include "record/keep_errno.h"
#include "shim/asked.h"
#include "shim/bindings.h"
#include "shim/cuda/driver.h"
#include "shim/explain.h"
#include "shim/exports.h"
#include "shim/forks.h"
#include "shim/load_error.h"
#include "shim/loaded_object.h"
#include "shim/modules.h"
#include "shim/originals.h"
#include "shim/profile.h"
#include "shim/python.h"
#include "shim/session.h"

namespace cudiag {
namespace {

constexpr size_t kPath = 1024;  // threads may have small stacks

bool switched_on() {
    return session_state() != SessionState::off;
}

// ld's scripts are text: /* GNU ld script ... GROUP ( /lib/libc.so.6 ... ) */
__attribute__((noinline)) bool is_linker_script(const char* path) {
    const int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0) {
        return false;
    }
    char begin[512];
    const long size = read(file, begin, sizeof begin - 1);
    (void)close(file);
    begin[size > 0 ? size : 0] = '\0';
    return size > 4 && begin[0] != '\x7f' &&
           (strstr(begin, "GROUP") != nullptr || strstr(begin, "INPUT") != nullptr ||
            strstr(begin, "ld script") != nullptr);
}

// dlopen's text for a library that lacks a symbol and dlsym's for a symbol that a library lacks are
// the same. The loader unmaps what it could not finish: an object that is there was only searched.
bool is_lookup(const Asked* asked, const LoadError& error) {
    if (asked == nullptr || asked->name[0] == '\0' || is_mapped(asked->name)) {
        return true;
    }
    char subject[kPath];
    if (error.subject_length == 0 || error.subject_length >= sizeof subject) {
        return false;
    }
    memcpy(subject, error.subject, error.subject_length);
    subject[error.subject_length] = '\0';
    return is_mapped(subject) || is_program(subject) ||
           (asked->has_name_space && is_mapped_anywhere(subject));
}

// Does Python's import ask, which hands the whole text on as an ImportError? Packages try optional
// parts of their own so (CuPy its cuTENSOR) and go on as well: no news until the program fails.
bool is_import(const FieldValue* frames, size_t count) {
    constexpr char kImporter[] = "<frozen importlib";
    constexpr size_t kLength = sizeof kImporter - 1;
    for (size_t i = 0; i < count; ++i) {
        if (frames[i].field == Field::python_file) {
            return frames[i].bytes != nullptr && frames[i].size >= kLength &&
                   memcmp(frames[i].bytes, kImporter, kLength) == 0;
        }
    }
    return false;
}

void note_failure(EntryKind kind, const Asked* asked, const char* text, const LoadError& error) {
    bool breakage = asked != nullptr && kind == EntryKind::dlopen_failed &&
                    is_breakage(asked->name, error, is_linker_script(asked->name));
    const bool module = asked != nullptr && is_python_module(asked->name);
    if (!open_session()) {
        if (breakage && !module) {
            note_breakage();
        }
        return;
    }
    FieldValue fields[8 + kPythonFields];
    size_t count = 0;
    char caller[kPath];
    uint64_t offset = 0;
    fields[count++] = FieldValue::of(Field::text, text);
    fields[count++] = FieldValue::of(Field::snapshot, note_modules());
    if (asked != nullptr) {
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
    PythonFrames frames;
    const size_t own = count;
    count += frames.collect(fields + count);
    // Of a Python that cannot be looked into (ncu has one within itself) the import may be one that
    // does well without.
    breakage = breakage && !(module && count == own);
    const size_t of_python = count;
    if (breakage) {
        fields[count++] = FieldValue::of(Field::certain, uint64_t{1});
    }
    (void)note(kind, fields, count);
    if (breakage && !is_import(fields + own, of_python - own)) {
        note_breakage();
        explain_early();
    }
}

void settle(const char* text) {
    const KeepErrno keep;
    if (!switched_on() || in_vfork_child()) {
        return;
    }
    reap_explanation();
    const Asked* asked = last_asked();
    const LoadError error = parse_load_error(text);
    if (is_about_symbol(error) && is_lookup(asked, error)) {
        note_failure(EntryKind::dlsym_failed, asked, text, error);
    } else if (asked != nullptr && !is_about_another_call(error)) {
        note_failure(EntryKind::dlopen_failed, asked, text, error);
    }
    forget_asked();
}

// What a program gets if no loaded object has the function: an answer instead of a crash.
void* nothing_there() {
    return nullptr;
}

template <class Function>
void* or_nothing(Function* real) {
    return real != nullptr ? reinterpret_cast<void*>(real)
                           : reinterpret_cast<void*>(&nothing_there);
}

void enter(const char* file, int mode, uintptr_t caller, const long* name_space) {
    const KeepErrno keep;
    if (switched_on()) {
        if (__builtin_expect(profile_is_wanted(), 0)) {
            prepare_profile();
        }
        remember_asked(file, mode, caller, name_space);
        if (!in_vfork_child()) {
            rebind(When::later);
        }
        // An import has the GIL, and frames to compare.
        if (driver_is_known()) {
            prove_python_memory();
        }
    }
}

}  // namespace
}  // namespace cudiag

extern "C" {

// Called by the entries in dl.S, which jump to what these return.
void* cudiag_enter_dlopen(const char* file, int mode, uintptr_t caller) {
    cudiag::enter(file, mode, caller, nullptr);
    return cudiag::or_nothing(cudiag::originals_with_loader().dlopen);
}

void* cudiag_enter_dlmopen(long name_space, const char* file, int mode, uintptr_t caller) {
    cudiag::enter(file, mode, caller, &name_space);
    return cudiag::or_nothing(cudiag::originals_with_loader().dlmopen);
}

CUDIAG_EXPORT char* dlerror() {
    const auto real = cudiag::originals_with_loader().dlerror;
    if (real == nullptr) {
        return nullptr;
    }
    char* text = real();
    if (text != nullptr) {
        cudiag::settle(text);
    }
    return text;
}

// Of a function that we stand before, what is said without us. A library that stands in for dlopen
// behind us asks whose `dlopen` is, to find its own file and hand it out for libcuda.so.1 (Nsight
// Compute's libcuda-injection.so): it would hand out ours.
CUDIAG_EXPORT int dladdr(const void* address, Dl_info* info) {
    const auto real = cudiag::originals_with_loader().dladdr;
    const int found = real == nullptr ? 0 : real(address, info);
    Dl_info ours;
    if (found == 0 || info->dli_saddr != address || info->dli_sname == nullptr ||
        real(reinterpret_cast<const void*>(&cudiag_enter_dlopen), &ours) == 0 ||
        ours.dli_fbase != info->dli_fbase) {
        return found;
    }
    void* const next = cudiag::find_symbol(info->dli_sname);
    return next == nullptr ? found : real(next, info);
}
}
