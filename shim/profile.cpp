#include "shim/profile.h"

#include <dlfcn.h>
#include <string.h>
#include <unistd.h>

#include "cupti/interface.h"
#include "record/keep_errno.h"
#include "shim/build_tools.h"
#include "shim/cuda/asked_driver.h"
#include "shim/cuda/driver.h"
#include "shim/cuda/launches.h"
#include "shim/forks.h"
#include "shim/originals.h"
#include "shim/own_file.h"
#include "shim/run_directory.h"
#include "shim/session.h"
#include "shim/start_environment.h"
#include "shim/step_hooks.h"
#include "shim/text.h"

extern "C" int on_exit(void (*function)(int, void*), void* argument) __attribute__((weak));

namespace cudiag {
namespace {

enum class Mode : uint8_t { off, optimizer, launches };

Mode mode = Mode::off;
bool forked = false;  // a child of fork is not profiled

Writer writer;
// A FileState, as the integer that the atomic builtins want.
uint8_t file = 0;

enum class FileState : uint8_t { none = 0, opening = 1, open = 2, refused = 3 };

// The functions of libcudiag-cupti.so (cupti/interface.h), nullptr if it could not be loaded.
decltype(cudiag_cupti_begin)* cupti_begin = nullptr;
decltype(cudiag_cupti_end)* cupti_end = nullptr;
decltype(cudiag_cupti_forget)* cupti_forget = nullptr;

bool prepared = false;
bool begun = false;
bool window_is_open = false;
bool window_ended = false;
bool counting = false;  // launches
uint64_t launches = 0;

// Enough for medians, and for what the first steps alone do; few, since CUPTI takes 3 to 5 us for
// each launch that it records, a tenth of a step that the host decides (docs/gpu-results.md).
constexpr uint64_t kWindowSteps = 12;
constexpr uint64_t kLogBytes = uint64_t{24} << 20;
// What must be left for the end of the window and for steps behind it.
constexpr uint64_t kForSteps = uint64_t{4} << 20;
uint64_t written = 0;  // bytes, roughly
bool full = false;     // of records

constexpr size_t kOptimizers = 64;

struct Running {
    uint64_t begin, launches, number;
    uint64_t loads, loading, allocations, allocating;
    bool profiled;
};

Running running[kOptimizers];
uint32_t optimizers = 0;
uint64_t window_steps = 0;  // of all optimizers, since the window began
uint64_t steps_behind = 0;  // written behind the window
bool stepping =
    false;  // a step is being noted, or the window ended: another thread's step is left out

struct Slow {
    uint64_t calls, ns;
};

Slow slow[2];

template <class T>
T load(const T& from) {
    return __atomic_load_n(&from, __ATOMIC_ACQUIRE);
}

FileState file_state() {
    return static_cast<FileState>(load(file));
}

bool append(EntryKind kind, const FieldValue* fields, size_t count) {
    if (file_state() != FileState::open) {
        return false;
    }
    uint64_t bytes = sizeof(EntryHead);
    for (size_t i = 0; i < count; ++i) {
        bytes += sizeof(FieldHead) + fields[i].size;
    }
    // Records leave room for what makes sense of them.
    if (kind == EntryKind::device_records && load(written) + bytes > kLogBytes - kForSteps) {
        __atomic_store_n(&full, true, __ATOMIC_RELEASE);
        return false;
    }
    (void)__atomic_add_fetch(&written, bytes, __ATOMIC_RELAXED);
    return writer.append(kind, fields, count);
}

void note_lack(const char* why) {
    const FieldValue field = FieldValue::of(Field::text, why);
    (void)append(EntryKind::profile_lacks, &field, 1);
}

// "580.159.04" of "NVRM version: NVIDIA UNIX x86_64 Kernel Module  580.159.04  Tue …".
const char* driver_release(char* buffer, size_t size) {
    constexpr char kBefore[] = "Kernel Module";
    if (read_file("/proc/driver/nvidia/version", buffer, size) <= 0) {
        return "";
    }
    char* at = strstr(buffer, kBefore);
    at = at == nullptr ? nullptr : at + sizeof kBefore - 1;
    // The open module says so first: "… Open Kernel Module for x86_64  580.95.05 …".
    while (at != nullptr && *at != '\0' && *at != '\n' &&
           !(*at >= '0' && *at <= '9' && at[-1] == ' ')) {
        ++at;
    }
    if (at == nullptr || *at < '0' || *at > '9') {
        return "";
    }
    at[strspn(at, "0123456789.")] = '\0';
    return at;
}

// "GPU-4d2a0c1e-…" as nvidia-smi writes it.
void write_uuid(const unsigned char (&bytes)[16], Text& text) {
    constexpr char kDigits[] = "0123456789abcdef";
    text.add("GPU-");
    for (size_t i = 0; i < sizeof bytes; ++i) {
        const char pair[2] = {kDigits[bytes[i] >> 4], kDigits[bytes[i] & 0xfU]};
        text.add(i == 4 || i == 6 || i == 8 || i == 10 ? "-" : "").add(pair, sizeof pair);
    }
}

void note_device() {
    const AskedDriver& driver = asked_driver();
    int device = 0;
    if (driver.cuCtxGetDevice == nullptr || driver.cuCtxGetDevice(&device) != 0) {
        return;
    }
    char name[128] = "";
    char uuid[64];
    char release[1024];
    unsigned char bytes[16] = {};
    Text text{uuid, sizeof uuid};
    if (driver.cuDeviceGetName != nullptr) {
        (void)driver.cuDeviceGetName(name, sizeof name, device);
        name[sizeof name - 1] = '\0';
    }
    if (driver.cuDeviceGetUuid_v2 != nullptr && driver.cuDeviceGetUuid_v2(bytes, device) == 0) {
        write_uuid(bytes, text);
    }
    const FieldValue fields[] = {
        FieldValue::of(Field::device_ordinal, static_cast<uint64_t>(device)),
        FieldValue::of(Field::name, name), FieldValue::of(Field::value, uuid),
        FieldValue::of(Field::text, driver_release(release, sizeof release))};
    (void)append(EntryKind::profile_device, fields, 4);
}

bool open_now() {
    const int at = open_run_directory();
    if (at < 0) {
        return false;
    }
    // As the recording is called, whose number the end of its name may hold.
    char name[64];
    const char* const recording = recording_name();
    const char* const dot = strrchr(recording, '.');
    Text text{name, sizeof name};
    text.add(recording, dot == nullptr ? strlen(recording) : static_cast<size_t>(dot - recording))
        .add(kProfileSuffix);
    const ProcessIdentity& who = identity();
    const Identity identity_of_file{who.pid, who.ppid, who.root_pid, who.start_ticks,
                                    who.root_start_ticks};
    Capacity capacity;
    capacity.log_bytes = kLogBytes;
    int error = 0;
    const OpenResult result = writer.open(at, name, capacity, identity_of_file, &error);
    (void)close(at);
    if (result != OpenResult::ok) {
        const FieldValue fields[] = {
            FieldValue::of(Field::text, "no file for the profile could be made"),
            FieldValue::of(Field::error, static_cast<uint64_t>(static_cast<unsigned>(error)))};
        (void)note(EntryKind::profile_lacks, fields, 2);
    }
    return result == OpenResult::ok;
}

// True if there is a file to write to; made at the first call.
bool open_profile() {
    auto expected = static_cast<uint8_t>(FileState::none);
    if (file_state() == FileState::none && open_session() &&
        __atomic_compare_exchange_n(&file, &expected, static_cast<uint8_t>(FileState::opening),
                                    false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)) {
        const bool opened = open_now();
        __atomic_store_n(&file, static_cast<uint8_t>(opened ? FileState::open : FileState::refused),
                         __ATOMIC_RELEASE);
        const FieldValue field =
            FieldValue::of(Field::name, mode == Mode::optimizer ? "optimizer" : "launches");
        (void)append(EntryKind::profile, &field, 1);
    }
    return file_state() == FileState::open;
}

void at_exit(int /*status*/, void* /*argument*/) {
    end_profile();
}

void begin_window() {
    window_steps = 0;
    __atomic_store_n(&window_ended, false, __ATOMIC_RELEASE);
    __atomic_store_n(&counting, true, __ATOMIC_RELEASE);
    count_launches(true);
    if (cupti_begin == nullptr) {
        note_lack("libcudiag-cupti.so could not be loaded beside libcudiag.so");
        return;
    }
    const CuptiHost host{append, originals().dlopen, driver_version()};
    const bool recording = cupti_begin(&host, load(launches));
    __atomic_store_n(&window_is_open, recording, __ATOMIC_RELEASE);
    // What libcupti could not be loaded from is nothing that the program asked for.
    if (!recording && originals().dlerror != nullptr) {
        (void)originals().dlerror();
    }
}

// What is running is recorded only when it is done; while a stream is captured nothing may wait.
bool wait_for_device() {
    const AskedDriver& driver = asked_driver();
    if (capture_is_going_on()) {
        return false;
    }
    if (driver.cuCtxSynchronize != nullptr) {
        (void)driver.cuCtxSynchronize();
    }
    return true;
}

void end_window(bool last) {
    if (load(window_ended) || (!wait_for_device() && !last)) {
        return;
    }
    if (load(window_is_open) && !cupti_end(load(launches), last)) {
        return;
    }
    __atomic_store_n(&window_is_open, false, __ATOMIC_RELEASE);
    __atomic_store_n(&window_ended, true, __ATOMIC_RELEASE);
    __atomic_store_n(&counting, false, __ATOMIC_RELEASE);
    count_launches(false);
}

bool window_is_long_enough() {
    const uint64_t wanted = kWindowSteps * (optimizers < 4 ? optimizers : 4);
    return mode == Mode::optimizer && window_steps >= wanted;
}

// Behind the window all of the first steps, then fewer and fewer, two in a row.
bool is_written_behind(uint64_t number) {
    constexpr uint64_t kAll = 4096;
    uint64_t stride = 1;
    for (uint64_t at = kAll; at <= steps_behind && stride < (uint64_t{1} << 40); at += kAll) {
        stride *= 4;
    }
    return stride == 1 || number % stride < 2;
}

void write_step(const StepRecord& step) {
    if (step.profiled == 0 && load(window_ended)) {
        if (!is_written_behind(step.number)) {
            return;
        }
        ++steps_behind;
    }
    const FieldValue field = FieldValue::of(Field::records, &step, sizeof step);
    (void)append(EntryKind::optimizer_step, &field, 1);
}

}  // namespace

void read_profile_setting() {
    const char* set = start_variable("CUDIAG_PROFILE");
    if (set == nullptr || *set == '\0') {
        return;
    }
    if (strcmp(set, "optimizer") == 0) {
        mode = Mode::optimizer;
    } else if (strcmp(set, "launches") == 0) {
        mode = Mode::launches;
    } else if (printing() != Printing::off && is_root()) {
        constexpr char kLine[] =
            "cudiag: CUDIAG_PROFILE is to be optimizer or launches: nothing is profiled\n";
        (void)!write(2, kLine, sizeof kLine - 1);
    }
    char program[64];
    if (mode != Mode::off &&
        build_role(own_program(program, sizeof program)) != BuildRole::not_one) {
        mode = Mode::off;
    }
}

bool profile_is_wanted() {
    return mode != Mode::off && !load(forked);
}

bool has_profile() {
    return file_state() == FileState::open;
}

void prepare_profile() {
    if (!profile_is_wanted() || __atomic_exchange_n(&prepared, true, __ATOMIC_ACQ_REL) ||
        in_vfork_child()) {
        return;
    }
    const KeepErrno keep;
    char path[4096];
    if (originals().dlopen != nullptr && own_neighbour("libcudiag-cupti.so", path, sizeof path)) {
        (void)originals().dlopen(path, RTLD_NOW | RTLD_GLOBAL);
        const auto find = [](auto*& function, const char* name) {
            function = reinterpret_cast<decltype(+function)>(find_symbol(name));
        };
        find(cupti_end, "cudiag_cupti_end");
        find(cupti_forget, "cudiag_cupti_forget");
        find(cupti_begin, "cudiag_cupti_begin");
    }
}

void begin_profile() {
    if (!profile_is_wanted() || load(begun)) {
        return;
    }
    const KeepErrno keep;
    if (in_vfork_child() || __atomic_exchange_n(&begun, true, __ATOMIC_ACQ_REL) ||
        !open_profile()) {
        return;
    }
    note_device();
    begin_window();
    // Behind the handlers of CUDA's libraries, so before them at the end.
    if (on_exit != nullptr) {
        (void)on_exit(at_exit, nullptr);
    }
    if (mode == Mode::optimizer) {
        arm_step_hooks();
    }
}

void count_launch() {
    (void)__atomic_add_fetch(&launches, 1, __ATOMIC_RELAXED);
    if (__builtin_expect(load(full), 0) &&
        !__atomic_exchange_n(&stepping, true, __ATOMIC_ACQ_REL)) {
        const KeepErrno keep;
        end_window(false);
        __atomic_store_n(&stepping, false, __ATOMIC_RELEASE);
    }
}

uint64_t slow_call_begins() {
    return __builtin_expect(load(counting), 0) ? realtime_ns() : 0;
}

void slow_call_ended(SlowCall call, uint64_t began) {
    if (began != 0) {
        Slow& of = slow[static_cast<size_t>(call)];
        (void)__atomic_add_fetch(&of.calls, 1, __ATOMIC_RELAXED);
        (void)__atomic_add_fetch(&of.ns, realtime_ns() - began, __ATOMIC_RELAXED);
    }
}

uint32_t note_optimizer(const char* description, size_t size) {
    if (!profile_is_wanted() || !open_profile()) {
        return kNoOptimizer;
    }
    const uint32_t number = __atomic_fetch_add(&optimizers, 1, __ATOMIC_ACQ_REL);
    if (number >= kOptimizers) {
        __atomic_store_n(&optimizers, static_cast<uint32_t>(kOptimizers), __ATOMIC_RELEASE);
        return kNoOptimizer;
    }
    const FieldValue fields[] = {FieldValue::of(Field::index, uint64_t{number}),
                                 FieldValue::of(Field::text, description, size)};
    (void)append(EntryKind::optimizer, fields, 2);
    return number;
}

void step_begins(uint32_t optimizer) {
    if (optimizer >= kOptimizers || !profile_is_wanted()) {
        return;
    }
    Running& now = running[optimizer];
    now.profiled = load(window_is_open);
    now.launches = load(launches);
    now.loads = load(slow[0].calls);
    now.loading = load(slow[0].ns);
    now.allocations = load(slow[1].calls);
    now.allocating = load(slow[1].ns);
    now.begin = realtime_ns();
}

void step_ended(uint32_t optimizer) {
    if (optimizer >= kOptimizers || running[optimizer].begin == 0 || !profile_is_wanted() ||
        __atomic_exchange_n(&stepping, true, __ATOMIC_ACQ_REL)) {
        return;
    }
    const KeepErrno keep;
    Running& now = running[optimizer];
    StepRecord step{};
    step.end = realtime_ns();
    step.optimizer = optimizer;
    step.profiled = now.profiled && load(window_is_open) ? 1 : 0;
    step.number = now.number++;
    step.begin = now.begin;
    step.launches_before = now.launches;
    step.launches_after = load(launches);
    step.loads = load(slow[0].calls) - now.loads;
    step.loading = load(slow[0].ns) - now.loading;
    step.allocations = load(slow[1].calls) - now.allocations;
    step.allocating = load(slow[1].ns) - now.allocating;
    now.begin = 0;
    write_step(step);
    ++window_steps;
    if (!load(window_ended) && window_is_long_enough()) {
        end_window(false);
    }
    __atomic_store_n(&stepping, false, __ATOMIC_RELEASE);
}

void note_no_steps(const char* why) {
    if (open_profile()) {
        const FieldValue fields[] = {FieldValue::of(Field::name, "steps"),
                                     FieldValue::of(Field::text, why)};
        (void)append(EntryKind::profile_lacks, fields, 2);
    }
}

void end_profile() {
    if (has_profile() && !in_vfork_child() && profile_is_wanted()) {
        const KeepErrno keep;
        end_window(true);
    }
}

void forget_profile() {
    __atomic_store_n(&forked, true, __ATOMIC_RELEASE);
    writer.forget();
    file = static_cast<uint8_t>(FileState::none);
    counting = window_is_open = false;
    if (cupti_forget != nullptr) {
        cupti_forget();
    }
}

}  // namespace cudiag
