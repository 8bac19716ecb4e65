#include "shim/cuda/failed_calls.h"

#include "record/keep_errno.h"
#include "shim/forks.h"
#include "shim/modules.h"
#include "shim/python.h"
#include "shim/session.h"

namespace cudiag {
namespace {

constexpr size_t kPath = 1024;  // threads may have small stacks
constexpr uint32_t kMost = 64;
constexpr uint32_t kMostAlike = 4;

// CUresult (cuda.h), as far as it is an answer and no error.
constexpr int kNotReady = 600;
constexpr int kFirstOfCapture = 900;  // CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED
constexpr int kLastOfCapture = 908;   // CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD

struct Alike {
    uint64_t key;  // which function, error and caller; 0: free
    uint32_t count;
};

Alike seen[kMost];
uint32_t noted = 0;
bool asked = false;  // a libcuda was asked, and its version is known
uint64_t version = 0;
bool driver_noted = false;

bool is_answer(Errors errors, int error) {
    return error == kNotReady || errors == Errors::none ||
           (errors == Errors::not_capture && error >= kFirstOfCapture && error <= kLastOfCapture);
}

// 8 bits of the function, 10 of the error (the largest is 999), 46 of the address; never 0, since
// an error is not.
uint64_t key_of(size_t entry, int error, uintptr_t caller) {
    constexpr unsigned kErrorBits = 10;
    constexpr unsigned kCallerBits = 46;
    const uint64_t number =
        (static_cast<uint64_t>(entry) << kErrorBits) |
        (static_cast<uint64_t>(static_cast<unsigned>(error)) % (1U << kErrorBits));
    return (number << kCallerBits) | (caller & ((uint64_t{1} << kCallerBits) - 1));
}

bool is_new(uint64_t key) {
    if (__atomic_load_n(&noted, __ATOMIC_RELAXED) >= kMost) {
        return false;
    }
    for (Alike& alike : seen) {
        uint64_t found = 0;
        if (!__atomic_compare_exchange_n(&alike.key, &found, key, false, __ATOMIC_RELAXED,
                                         __ATOMIC_RELAXED) &&
            found != key) {
            continue;
        }
        return __atomic_load_n(&alike.count, __ATOMIC_RELAXED) < kMostAlike &&
               __atomic_fetch_add(&alike.count, 1, __ATOMIC_RELAXED) < kMostAlike &&
               __atomic_fetch_add(&noted, 1, __ATOMIC_RELAXED) < kMost;
    }
    return false;
}

void ask_version() {
    if (!__atomic_load_n(&asked, __ATOMIC_ACQUIRE)) {
        version = driver_version();
        __atomic_store_n(&asked, true, __ATOMIC_RELEASE);
    }
}

}  // namespace

// Out of line: a wrapper's frame stays small.
__attribute__((noinline, cold)) void note_failed_call(const DriverCall& call, size_t entry,
                                                      int error, uintptr_t caller) {
    const KeepErrno keep;
    if (is_answer(call.errors, error) || session_state() == SessionState::off || in_vfork_child() ||
        !is_new(key_of(entry, error, caller))) {
        return;
    }
    ask_version();
    if (!open_session()) {
        return;
    }
    note_driver();
    FieldValue fields[5 + kPythonFields];
    size_t count = 0;
    char module[kPath];
    uint64_t offset = 0;
    (void)module_holding(caller, module, sizeof module, &offset);
    fields[count++] = FieldValue::of(Field::name, call.name);
    fields[count++] =
        FieldValue::of(Field::error, static_cast<uint64_t>(static_cast<unsigned>(error)));
    fields[count++] = FieldValue::of(Field::text, driver_words(error));
    fields[count++] = FieldValue::of(Field::caller, module);
    fields[count++] = FieldValue::of(Field::caller_offset, offset);
    PythonFrames frames;
    count += frames.collect(fields + count);
    (void)note(EntryKind::cuda_call_failed, fields, count);
}

void remember_driver() {
    if (__atomic_load_n(&driver_noted, __ATOMIC_RELAXED)) {
        return;
    }
    const KeepErrno keep;
    ask_version();
    note_driver();
}

void note_driver() {
    const KeepErrno keep;
    if (!__atomic_load_n(&asked, __ATOMIC_ACQUIRE) || session_state() != SessionState::open ||
        in_vfork_child() || __atomic_exchange_n(&driver_noted, true, __ATOMIC_ACQ_REL)) {
        return;
    }
    char path[kPath];
    (void)driver_path(path, sizeof path);
    const FieldValue fields[] = {FieldValue::of(Field::path, path),
                                 FieldValue::of(Field::driver_version, version)};
    (void)note(EntryKind::cuda_driver, fields, 2);
}

void forget_driver_calls() {
    for (Alike& alike : seen) {
        alike = {};
    }
    noted = 0;
    driver_noted = false;
}

}  // namespace cudiag
