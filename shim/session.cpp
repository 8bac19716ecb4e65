#include "shim/session.h"

#include <errno.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "record/keep_errno.h"
#include "shim/cuda/failed_calls.h"
#include "shim/cuda/kernels.h"
#include "shim/cuda/launches.h"
#include "shim/cuda/runtime_errors.h"
#include "shim/forks.h"
#include "shim/hot_state.h"
#include "shim/lifecycle.h"
#include "shim/modules.h"
#include "shim/nccl/calls.h"
#include "shim/run_directory.h"
#include "shim/start_environment.h"
#include "shim/text.h"

namespace cudiag {

constinit HotState hot_state;

namespace {

constexpr size_t kNames = 17;  // recordings of one pid in one run: exec keeps the pid

// A SessionState, as the integer that the atomic builtins want (clang takes no enumeration).
uint8_t state = static_cast<uint8_t>(SessionState::unstarted);
Printing print = Printing::normal;
Writer writer;
char record_name[48];
const char* why_not = nullptr;  // there is no recording
bool breakage = false;
// Whether rings were asked for: a Rings, as an integer.
uint8_t rings = 0;

enum class Rings : uint8_t { unasked = 0, opening = 1, there = 2, refused = 3 };

SessionState load_state() {
    return static_cast<SessionState>(__atomic_load_n(&state, __ATOMIC_ACQUIRE));
}

void store_state(SessionState next) {
    __atomic_store_n(&state, static_cast<uint8_t>(next), __ATOMIC_RELEASE);
}

// False if the state was not, or is no longer, `from`.
bool change_state(SessionState from, SessionState to) {
    auto expected = static_cast<uint8_t>(from);
    return __atomic_compare_exchange_n(&state, &expected, static_cast<uint8_t>(to), false,
                                       __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE);
}

void add_variable(const char* name, size_t length, const char* value, void* /*context*/) {
    const FieldValue fields[] = {FieldValue::of(Field::name, name, length),
                                 FieldValue::of(Field::value, value)};
    (void)writer.append(EntryKind::variable, fields, 2);
}

void note_process() {
    // A longer command line is cut; it is for people to recognise. One thread comes here at a time.
    static char arguments[16384];
    static char exe[4096];
    static char cwd[4096];
    const long length = read_file("/proc/self/cmdline", arguments, sizeof arguments);
    const long exe_length = readlink("/proc/self/exe", exe, sizeof exe);
    const long cwd_length = readlink("/proc/self/cwd", cwd, sizeof cwd);
    constexpr size_t kMost = 258;
    static FieldValue fields[kMost];
    fields[0] =
        FieldValue::of(Field::path, exe, exe_length > 0 ? static_cast<size_t>(exe_length) : 0);
    fields[1] = FieldValue::of(Field::working_directory, cwd,
                               cwd_length > 0 ? static_cast<size_t>(cwd_length) : 0);
    size_t count = 2;
    for (long at = 0; at < length && count < kMost;) {
        const size_t size = strnlen(arguments + at, static_cast<size_t>(length - at));
        fields[count++] = FieldValue::of(Field::argument, arguments + at, size);
        at += static_cast<long>(size) + 1;
    }
    (void)writer.append(EntryKind::process, fields, count);
    for_each_recorded(add_variable, nullptr);
}

OpenResult open_file(int at, int* error) {
    const ProcessIdentity& who = identity();
    const Identity identity_of_file{who.pid, who.ppid, who.root_pid, who.start_ticks,
                                    who.root_start_ticks};
    OpenResult result = OpenResult::exists;
    for (size_t number = 0; number < kNames && result == OpenResult::exists; ++number) {
        Text name{record_name, sizeof record_name};
        name.add(static_cast<uint64_t>(who.pid));
        if (number > 0) {
            name.add(".").add(number);
        }
        name.add(".rec");
        result = writer.open(at, record_name, Capacity{}, identity_of_file, error);
    }
    return result;
}

const char* reason(OpenResult result) {
    switch (result) {
        case OpenResult::no_space:
            return "no space left (needs 1 MiB)";
        case OpenResult::over_limit:
            return "the file size limit (ulimit -f) is below 1 MiB";
        case OpenResult::no_permission:
            return "no permission (set CUDIAG_DIR to a directory of your own)";
        case OpenResult::exists:
            return "too many recordings of this process";
        default:
            return "the file cannot be made (set CUDIAG_DIR to a directory of your own)";
    }
}

OpenResult result_of(int error) {
    switch (error) {
        case ENOSPC:
        case EDQUOT:
            return OpenResult::no_space;
        case EACCES:
        case EPERM:
        case EROFS:
            return OpenResult::no_permission;
        default:
            return OpenResult::failed;
    }
}

// Another thread is at it: its work is bounded, and so is the wait (2 s, for an emulated or
// overloaded machine; mostly well under a millisecond). Losing an entry is better than hanging the
// host.
void wait_while(const uint8_t& what, uint8_t is) {
    for (int turn = 0; turn < 20000 && __atomic_load_n(&what, __ATOMIC_ACQUIRE) == is; ++turn) {
        const struct timespec pause = {0, 100'000};
        (void)syscall(SYS_nanosleep, &pause, nullptr);
    }
}

bool open_now() {
    int error = 0;
    OpenResult result = OpenResult::failed;
    const int at = make_run_directory();
    if (at < 0) {
        result = result_of(errno);
    } else {
        result = open_file(at, &error);
        (void)close(at);
    }
    if (result != OpenResult::ok) {
        (void)rmdir(run_directory());  // fails, rightly, where others have recordings
        why_not = reason(result);
        return false;
    }
    note_process();
    return true;
}

// 8 threads may launch, and any more share the last one's; 4 MiB in all unless CUDIAG_RING_MB says
// otherwise (1 to 1024). 8192 records hold what four streams of the GPU take before they make the
// host wait (1024 each, measured on an H200).
constexpr uint32_t kRings = 8;

uint32_t ring_records() {
    const char* set = start_variable("CUDIAG_RING_MB");
    uint32_t megabytes = 0;
    for (; set != nullptr && *set >= '0' && *set <= '9' && megabytes < 1024; ++set) {
        megabytes = megabytes * 10 + static_cast<uint32_t>(*set - '0');
    }
    megabytes = megabytes == 0 ? 4 : megabytes > 1024 ? 1024 : megabytes;
    constexpr uint32_t kPerMegabyte = (1U << 20) / kRings / sizeof(HotRecord);
    uint32_t records = kPerMegabyte;  // a power of two: see Writer::append_hot
    while (records * 2 <= megabytes * kPerMegabyte) {
        records *= 2;
    }
    return records;
}

bool add_rings() {
    const int at = open_run_directory();
    int error = 0;
    const bool added = at >= 0 && writer.add_rings(at, record_name, kRings, ring_records(),
                                                   &error) == OpenResult::ok;
    if (at >= 0) {
        (void)close(at);
    }
    return added;
}

// Rings of threads are of the recording before.
void begin_another() {
    (void)__atomic_fetch_add(&hot_state.recording, 1, __ATOMIC_ACQ_REL);
    __atomic_store_n(&rings, static_cast<uint8_t>(Rings::unasked), __ATOMIC_RELEASE);
    forget_kernels();
    forget_launches();
}

void tell_why_not() {
    static bool told = false;
    if (print == Printing::off || !is_root() ||
        __atomic_exchange_n(&told, true, __ATOMIC_ACQ_REL)) {
        return;
    }
    char line[1024];
    Text text{line, sizeof line};
    text.add("cudiag: cannot record in ").add(run_directory()).add(": ").add(why_not).add("\n");
    (void)!write(2, line, text.length());
}

}  // namespace

void read_settings() {
    const char* setting = start_variable("CUDIAG");
    const bool off =
        (setting != nullptr && strcmp(setting, "off") == 0) || getauxval(AT_SECURE) != 0;
    const char* printed = start_variable("CUDIAG_PRINT");
    if (printed != nullptr) {
        print = strcmp(printed, "off") == 0   ? Printing::off
                : strcmp(printed, "all") == 0 ? Printing::all
                                              : Printing::normal;
    }
    store_state(off ? SessionState::off : SessionState::idle);
}

SessionState session_state() {
    const SessionState now = load_state();
    if (now == SessionState::off) {
        return now;
    }
    if (now == SessionState::unstarted) {
        begin();
    }
    check_fork();
    return load_state();
}

Printing printing() {
    return print;
}

bool open_session() {
    const KeepErrno keep;
    (void)session_state();
    if (change_state(SessionState::idle, SessionState::opening)) {
        const bool opened = open_now();
        store_state(opened ? SessionState::open : SessionState::given_up);
        note_driver();
        return opened;
    }
    wait_while(state, static_cast<uint8_t>(SessionState::opening));
    return load_state() == SessionState::open;
}

bool open_rings() {
    const KeepErrno keep;
    auto expected = static_cast<uint8_t>(Rings::unasked);
    if (__atomic_load_n(&rings, __ATOMIC_ACQUIRE) == static_cast<uint8_t>(Rings::unasked) &&
        open_session() &&
        __atomic_compare_exchange_n(&rings, &expected, static_cast<uint8_t>(Rings::opening), false,
                                    __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)) {
        __atomic_store_n(&rings, static_cast<uint8_t>(add_rings() ? Rings::there : Rings::refused),
                         __ATOMIC_RELEASE);
    }
    wait_while(rings, static_cast<uint8_t>(Rings::opening));
    return load_state() == SessionState::open && writer.has_rings();
}

RingHead* claim_ring(uint32_t* records) {
    RingHead* const ring = load_state() == SessionState::open ? writer.claim_ring() : nullptr;
    *records = writer.ring_records();
    return ring;
}

const char* recording_name() {
    return load_state() == SessionState::open ? record_name : "";
}

ProgressSlot* progress_slots() {
    return load_state() == SessionState::open ? writer.progress() : nullptr;
}

bool note(EntryKind kind, const FieldValue* fields, size_t count) {
    return session_state() == SessionState::open && writer.append(kind, fields, count);
}

void note_breakage() {
    const KeepErrno keep;
    __atomic_store_n(&breakage, true, __ATOMIC_RELEASE);
    if (session_state() == SessionState::given_up && why_not != nullptr) {
        tell_why_not();
    }
}

bool breakage_noted() {
    return __atomic_load_n(&breakage, __ATOMIC_ACQUIRE);
}

bool is_root() {
    return identity().root_pid == identity().pid;
}

void discard_session(bool last) {
    const KeepErrno keep;
    // The mapping stays: another thread may be writing to it.
    if (!change_state(SessionState::open, last ? SessionState::given_up : SessionState::opening)) {
        return;
    }
    const int at = open_run_directory();
    if (at >= 0) {
        (void)unlinkat(at, record_name, 0);
        (void)close(at);
        (void)rmdir(run_directory());  // fails, rightly, while others have recordings there
    }
    if (!last) {
        forget_modules();
        forget_driver_calls();
        forget_nccl_calls();
        forget_runtime_errors();
        begin_another();
        store_state(SessionState::idle);
    }
}

void mark_end(EndHow how, int status) {
    if (session_state() == SessionState::open) {
        writer.mark_end(how, status);
    }
}

void forget_session() {
    writer.forget();
    begin_another();
    breakage = false;
    const SessionState now = load_state();
    if (now != SessionState::off && now != SessionState::unstarted &&
        (now != SessionState::given_up || why_not == nullptr)) {
        store_state(SessionState::idle);
    }
}

}  // namespace cudiag
