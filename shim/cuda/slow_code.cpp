#include "shim/cuda/slow_code.h"

#include <string.h>
#include <time.h>

#include "record/keep_errno.h"
#include "shim/cuda/device_fields.h"
#include "shim/cuda/failed_calls.h"
#include "shim/cuda/kernels.h"
#include "shim/forks.h"

namespace cudiag {
namespace {

// What the compiler takes for a kernel of some size; loading SASS takes a hundredth of it.
constexpr uint64_t kSlowNs = 100'000'000;
constexpr uint32_t kMost = 64;

uint32_t noted = 0;

// Code begins with its kind (diagnose/elf/fatbin.h says whence that is known). Only of code that
// stands in no file is it of use: there nothing can be read later.
const char* kind_of_code(const void* image) {
    constexpr size_t kWord = 4;
    if (memcmp(image,
               "\x7f"
               "ELF",
               kWord) == 0) {
        return "cubin";
    }
    if (memcmp(image, "\x50\xed\x55\xba", kWord) == 0 ||
        memcmp(image, "\xb1\x43\x62\x46", kWord) == 0) {
        return "fatbin";
    }
    return "PTX";
}

__attribute__((noinline, cold)) void note_slow(const CodeCall& call, uint64_t duration_ns) {
    if (session_state() == SessionState::off || in_vfork_child() ||
        __atomic_fetch_add(&noted, 1, __ATOMIC_RELAXED) >= kMost || !open_session()) {
        return;
    }
    note_driver();
    constexpr size_t kPath = 1024;  // threads may have small stacks
    constexpr size_t kName = 128;
    char path[kPath];
    char device[kName];
    Fields fields;
    fields.add(FieldValue::of(Field::name, call.name));
    fields.add(FieldValue::of(Field::duration_ns, duration_ns));
    if (call.handle != 0) {
        fields.add(FieldValue::of(Field::handle, call.handle));
    }
    if (call.kernel != nullptr) {
        fields.add(FieldValue::of(Field::argument, call.kernel));
    }
    if (call.file != nullptr) {
        fields.add(FieldValue::of(Field::path, call.file));
    } else {
        const auto image = reinterpret_cast<uintptr_t>(call.image);
        add_code(fields, image != 0 ? image : image_of(call.handle), path, sizeof path);
    }
    if (call.image != nullptr) {
        fields.add(FieldValue::of(Field::type, kind_of_code(call.image)));
    }
    (void)add_device(fields, device, sizeof device);
    PythonFrames frames;
    fields.add_frames(frames);
    (void)fields.note(EntryKind::cuda_code_slow);
}

}  // namespace

uint64_t monotonic_ns() {
    struct timespec now {};

    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return static_cast<uint64_t>(now.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(now.tv_nsec);
}

void note_if_slow(const CodeCall& call) {
    const KeepErrno keep;
    const uint64_t duration_ns = monotonic_ns() - call.began_ns;
    if (__builtin_expect(duration_ns >= kSlowNs, 0)) {
        note_slow(call, duration_ns);
    }
}

void forget_slow_code() {
    noted = 0;
}

}  // namespace cudiag
