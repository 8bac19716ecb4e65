#include "shim/cuda/failed_calls.h"

#include <string.h>

#include "record/keep_errno.h"
#include "shim/cuda/asked_driver.h"
#include "shim/cuda/device_fields.h"
#include "shim/cuda/driver_log.h"
#include "shim/cuda/kernels.h"
#include "shim/cuda/progress.h"
#include "shim/fields.h"
#include "shim/forks.h"
#include "shim/modules.h"
#include "shim/repeats.h"

namespace cudiag {
namespace {

constexpr size_t kPath = 1024;  // threads may have small stacks
constexpr size_t kLog = 2048;
constexpr uint32_t kMost = 64;
constexpr uint32_t kMostAlike = 4;

// CUresult (cuda.h), as far as it is an answer and no error.
constexpr int kNotReady = 600;
constexpr int kFirstOfCapture = 900;  // CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED
constexpr int kLastOfCapture = 908;   // CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD

// "the process must be terminated and relaunched" (cuda.h 13.0). The same as `sticky` in
// diagnose/knowledge/cuda_errors.json, which a test holds against this.
constexpr int kSticky[] = {226, 700, 702, 710, 714, 715, 716, 717, 718, 719, 721, 810, 911};

// After these the driver and the handles of the call are as good as before, and may be asked:
// CUDA_ERROR_INVALID_VALUE, OUT_OF_MEMORY, 9 and 98 (of cudart), INVALID_IMAGE, NO_BINARY_FOR_GPU,
// INVALID_PTX, UNSUPPORTED_PTX_VERSION, LAUNCH_OUT_OF_RESOURCES, COOPERATIVE_LAUNCH_TOO_LARGE,
// INVALID_CLUSTER_SIZE.
constexpr int kHarmless[] = {1, 2, 9, 98, 200, 209, 218, 222, 701, 720, 912};
// Those of code that was not accepted.
constexpr int kOfCode[] = {200, 209, 218, 222};

// CUfunction_attribute (cuda.h): limits on which launches fail.
constexpr int kFunctionLimits[] = {0 /* threads a block */,
                                   1 /* static shared memory */,
                                   3 /* local memory */,
                                   4 /* registers */,
                                   5 /* PTX version */,
                                   6 /* binary version */,
                                   8 /* dynamic shared memory at most */};

Repeats<kMost, kMostAlike> repeats;
bool sticky_noted = false;
bool asked = false;  // a libcuda was asked, and its version is known
uint64_t version = 0;
bool driver_noted = false;

bool is_answer(Errors errors, int error) {
    return error == kNotReady || errors == Errors::none ||
           (errors == Errors::not_capture && error >= kFirstOfCapture && error <= kLastOfCapture);
}

void ask_version() {
    if (!__atomic_load_n(&asked, __ATOMIC_ACQUIRE)) {
        version = driver_version();
        __atomic_store_n(&asked, true, __ATOMIC_RELEASE);
    }
}

template <size_t size>
bool is_one_of(int error, const int (&list)[size]) {
    for (const int each : list) {
        if (each == error) {
            return true;
        }
    }
    return false;
}

void add_launch(const Launch& launch, bool waited, Fields& fields) {
    fields.add(FieldValue::of(Field::handle, launch.function));
    fields.add(FieldValue::of(Field::stream, launch.stream));
    if (launch.kind == HotKind::launch) {
        for (const uint32_t extent : launch.grid) {
            fields.add(FieldValue::of(Field::grid, uint64_t{extent}));
        }
        for (const uint32_t extent : launch.block) {
            fields.add(FieldValue::of(Field::block, uint64_t{extent}));
        }
        fields.add(FieldValue::of(Field::shared_bytes, uint64_t{launch.shared}));
    }
    if (waited) {
        fields.add(FieldValue::of(Field::launched, uint64_t{1}));
    }
}

void add_function(uint64_t handle, int device, Fields& fields) {
    const AskedDriver& driver = asked_driver();
    const HandleKind kind = kind_of(handle);
    for (const int attribute : kFunctionLimits) {
        int value = 0;
        void* const function = handle_of(handle);
        const bool known =
            (kind == HandleKind::function && driver.cuFuncGetAttribute != nullptr &&
             driver.cuFuncGetAttribute(&value, attribute, function) == 0) ||
            (kind == HandleKind::kernel && driver.cuKernelGetAttribute != nullptr && device >= 0 &&
             driver.cuKernelGetAttribute(&value, attribute, function, device) == 0);
        if (known) {
            fields.add(FieldValue::of(Field::function_limit, limit_of(attribute, value)));
        }
    }
}

void add_memory(Fields& fields) {
    const AskedDriver& driver = asked_driver();
    size_t free = 0;
    size_t total = 0;
    if (driver.cuMemGetInfo_v2 != nullptr && driver.cuMemGetInfo_v2(&free, &total) == 0) {
        fields.add(FieldValue::of(Field::bytes_free, uint64_t{free}));
        fields.add(FieldValue::of(Field::bytes_total, uint64_t{total}));
    }
}

// Loads the code again with a buffer for what the compiler in the driver says: the program did not
// give one, and the error alone does not tell.
void add_jit_log(const void* image, char* log, size_t size, Fields& fields) {
    const AskedDriver& driver = asked_driver();
    if (driver.cuModuleLoadDataEx == nullptr || driver.cuModuleUnload == nullptr) {
        return;
    }
    constexpr int kErrorLog = 5;  // CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES
    const int options[] = {kErrorLog, kErrorLog + 1};
    void* values[] = {log, handle_of(size)};
    void* module = nullptr;
    log[0] = '\0';
    if (driver.cuModuleLoadDataEx(&module, image, 2, options, values) == 0) {
        (void)driver.cuModuleUnload(module);
    } else if (log[0] != '\0') {
        fields.add(FieldValue::of(Field::type, log, strnlen(log, size)));
    }
}

struct Buffers {
    char caller[kPath];
    char path[kPath];
    char log[kLog];
    char device[128];
};

void add_details(int error, const CallDetails& details, Buffers& buffers, Fields& fields) {
    const uint64_t handle = details.launch != nullptr ? details.launch->function : details.handle;
    if (details.launch != nullptr) {
        add_launch(*details.launch, details.waited, fields);
    } else if (handle != 0) {
        fields.add(FieldValue::of(Field::handle, handle));
    }
    if (details.bytes != 0) {
        fields.add(FieldValue::of(Field::bytes_asked, details.bytes));
    }
    if (details.name != nullptr) {
        fields.add(FieldValue::of(Field::argument, details.name));
    }
    if (is_one_of(error, kOfCode)) {
        const auto image = reinterpret_cast<uintptr_t>(details.image);
        add_code(fields, image != 0 ? image : image_of(handle), buffers.path, sizeof buffers.path);
        if (details.is_module && image != 0) {
            add_jit_log(details.image, buffers.log, sizeof buffers.log, fields);
        }
    }
    if (!is_one_of(error, kHarmless)) {
        return;
    }
    const int device = add_device(fields, buffers.device, sizeof buffers.device);
    if (details.launch != nullptr && details.launch->kind == HotKind::launch) {
        add_function(handle, device, fields);
    }
    constexpr int kOutOfMemory = 2;
    if (error == kOutOfMemory) {
        add_memory(fields);
    }
}

}  // namespace

bool is_sticky(int error) {
    return is_one_of(error, kSticky);
}

// Out of line: a wrapper's frame stays small.
__attribute__((noinline, cold)) void note_failed_call(const DriverCall& call, size_t entry,
                                                      int error, uintptr_t caller,
                                                      const CallDetails& details) {
    const KeepErrno keep;
    if (is_answer(call.errors, error) || session_state() == SessionState::off || in_vfork_child()) {
        return;
    }
    const bool is_launch = details.launch != nullptr;
    note_failure_in_ring(entry, error, is_launch ? details.launch->stream : 0,
                         is_launch ? details.launch->function : details.handle,
                         is_launch && !details.waited);
    const bool first_sticky =
        is_sticky(error) && !__atomic_exchange_n(&sticky_noted, true, __ATOMIC_ACQ_REL);
    if (!repeats.is_new(key_of_call(entry, error, caller)) && !first_sticky) {
        return;
    }
    ask_version();
    if (!open_session()) {
        return;
    }
    note_driver();
    if (first_sticky) {
        keep_progress();
    }
    const Asking asking;
    // Some kilobytes of stack, in a call that has failed.
    Fields fields;
    Buffers buffers;
    uint64_t offset = 0;
    (void)module_holding(caller, buffers.caller, sizeof buffers.caller, &offset);
    fields.add(FieldValue::of(Field::name, call.name));
    fields.add(FieldValue::of(Field::error, unsigned_of(error)));
    fields.add(FieldValue::of(Field::text, driver_words(error)));
    fields.add(FieldValue::of(Field::caller, buffers.caller));
    fields.add(FieldValue::of(Field::caller_offset, offset));
    add_details(error, details, buffers, fields);
    PythonFrames frames;
    fields.add_frames(frames);
    (void)fields.note(EntryKind::cuda_call_failed);
    if (first_sticky) {
        note_breakage();
    }
}

__attribute__((noinline, cold)) void note_context_gone(const DriverCall& call, size_t entry,
                                                       uintptr_t caller) {
    const KeepErrno keep;
    if (session_state() != SessionState::open || in_vfork_child() ||
        !repeats.is_new(key_of_call(entry, 0, caller))) {
        return;
    }
    Fields fields;
    char path[kPath];
    uint64_t offset = 0;
    (void)module_holding(caller, path, sizeof path, &offset);
    fields.add(FieldValue::of(Field::name, call.name));
    fields.add(FieldValue::of(Field::caller, path));
    fields.add(FieldValue::of(Field::caller_offset, offset));
    PythonFrames frames;
    fields.add_frames(frames);
    (void)fields.note(EntryKind::cuda_context_gone);
}

void remember_driver() {
    const KeepErrno keep;
    prove_python_memory();  // torch's cuInit has the GIL
    if (__atomic_load_n(&driver_noted, __ATOMIC_RELAXED)) {
        return;
    }
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
    repeats.forget();
    sticky_noted = false;
    driver_noted = false;
}

}  // namespace cudiag
