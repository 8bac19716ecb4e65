#include "shim/cuda/runtime_errors.h"

#include "record/keep_errno.h"
#include "shim/fields.h"
#include "shim/forks.h"
#include "shim/modules.h"
#include "shim/repeats.h"

namespace cudiag {
namespace {

enum Function : size_t { error_string, error_name, functions };

constexpr const char* kNames[functions] = {"cudaGetErrorString", "cudaGetErrorName"};

// Written by rebind().
void* real[kCopies * functions];

constexpr int kNotReady = 600;  // cudaErrorNotReady (driver_types.h): an answer

constexpr uint32_t kMost = 32;
constexpr uint32_t kMostAlike = 2;
Repeats<kMost, kMostAlike> repeats;

using Words = const char*(int);

__attribute__((noinline, cold)) void note_asked(size_t copy, size_t function, int error,
                                                const char* text, uintptr_t caller) {
    const KeepErrno keep;
    if (session_state() == SessionState::off || in_vfork_child() ||
        !repeats.is_new(key_of_call(function, error, caller)) || !open_session()) {
        return;
    }
    constexpr size_t kPath = 1024;  // threads may have small stacks
    char asked_by[kPath];
    char library[kPath];
    uint64_t offset = 0;
    uint64_t unused = 0;
    Fields fields;
    (void)module_holding(caller, asked_by, sizeof asked_by, &offset);
    (void)module_holding(reinterpret_cast<uintptr_t>(real[copy * functions + function]), library,
                         sizeof library, &unused);
    fields.add(FieldValue::of(Field::name, kNames[function]));
    fields.add(FieldValue::of(Field::error, static_cast<uint64_t>(static_cast<unsigned>(error))));
    fields.add(FieldValue::of(Field::text, text));
    fields.add(FieldValue::of(Field::path, library));
    fields.add(FieldValue::of(Field::caller, asked_by));
    fields.add(FieldValue::of(Field::caller_offset, offset));
    PythonFrames frames;
    fields.add_frames(frames);
    (void)fields.note(EntryKind::runtime_error_asked);
}

template <size_t copy, size_t function>
const char* wrapper(int error) {
    auto* const call = reinterpret_cast<Words*>(
        __atomic_load_n(&real[copy * functions + function], __ATOMIC_ACQUIRE));
    const char* const text = call != nullptr ? call(error) : "";
    if (error != 0 && error != kNotReady) {
        note_asked(copy, function, error, text,
                   reinterpret_cast<uintptr_t>(__builtin_return_address(0)));
    }
    return text;
}

void* wrapper_of(size_t copy, size_t function) {
    constexpr Words* kWrappers[kCopies][functions] = {
        {wrapper<0, error_string>, wrapper<0, error_name>},
        {wrapper<1, error_string>, wrapper<1, error_name>},
        {wrapper<2, error_string>, wrapper<2, error_name>},
        {wrapper<3, error_string>, wrapper<3, error_name>}};
    return reinterpret_cast<void*>(kWrappers[copy][function]);
}

const char* name_of(size_t function) {
    return kNames[function];
}

}  // namespace

const Family& runtime_functions() {
    static constexpr Family kRuntime{.soname = "libcudart",
                                     .imported = "cudaGetError",
                                     .functions = functions,
                                     .name = name_of,
                                     .wrapper = wrapper_of,
                                     .real = real};
    return kRuntime;
}

void forget_runtime_errors() {
    repeats.forget();
}

}  // namespace cudiag
