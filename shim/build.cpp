#include "shim/build.h"

#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "record/journal.h"
#include "record/keep_errno.h"
#include "shim/attempts.h"
#include "shim/build_tools.h"
#include "shim/explain.h"
#include "shim/forks.h"
#include "shim/journal.h"
#include "shim/limits.h"
#include "shim/opens.h"
#include "shim/python.h"
#include "shim/run_directory.h"
#include "shim/session.h"
#include "shim/start_environment.h"
#include "shim/text.h"

namespace cudiag {
namespace {

constexpr size_t kPath = 4096;

bool step = false;

FieldValue pid_field() {
    return FieldValue::of(Field::pid, static_cast<uint64_t>(syscall(SYS_getpid)));
}

struct Fields {
    FieldValue values[kJournalFields];
    size_t count = 0;

    void add(const FieldValue& value) {
        if (count < kJournalFields) {
            values[count++] = value;
        }
    }
};

void add_variable(const char* name, size_t length, const char* value, void* fields) {
    static_cast<Fields*>(fields)->add(FieldValue::of(Field::name, name, length));
    static_cast<Fields*>(fields)->add(FieldValue::of(Field::value, value));
}

// exe, cwd and arguments: read anew, since a shell's own are those of its start.
void add_program(Fields& fields) {
    // One thread comes here at a time: the first, or the one that ends the process.
    static char arguments[size_t{64} << 10];
    static char exe[kPath];
    static char cwd[kPath];
    const long exe_length = readlink("/proc/self/exe", exe, sizeof exe);
    const long cwd_length = readlink("/proc/self/cwd", cwd, sizeof cwd);
    const long length = read_file("/proc/self/cmdline", arguments, sizeof arguments);
    fields.add(
        FieldValue::of(Field::path, exe, exe_length > 0 ? static_cast<size_t>(exe_length) : 0));
    fields.add(FieldValue::of(Field::working_directory, cwd,
                              cwd_length > 0 ? static_cast<size_t>(cwd_length) : 0));
    // Room is kept for limits and variables. Of a long list the middle is left out: a link has its
    // objects there, and the libraries at the end. The command knows by the count.
    constexpr uint64_t kFirst = 90;
    constexpr uint64_t kLast = 130;
    uint64_t all = 0;
    for (long at = 0; at < length; ++at) {
        all += arguments[at] == '\0' ? 1 : 0;
    }
    long at = 0;
    for (uint64_t i = 0; i < all; ++i) {
        const size_t size = strnlen(arguments + at, static_cast<size_t>(length - at));
        if (i < kFirst || i + kLast >= all) {
            fields.add(FieldValue::of(Field::argument, arguments + at, size));
        }
        at += static_cast<long>(size) + 1;
    }
    fields.add(FieldValue::of(Field::count, all));
}

void add_identity(Fields& fields) {
    const ProcessIdentity& who = identity();
    fields.add(pid_field());
    fields.add(FieldValue::of(Field::parent, static_cast<uint64_t>(who.parent_pid)));
    fields.add(FieldValue::of(Field::start_ticks, who.start_ticks));
}

void add_limits(Fields& fields, const Limits& limits) {
    FieldValue values[kLimitFields];
    const size_t count = limits.fields(values);
    for (size_t i = 0; i < count; ++i) {
        fields.add(values[i]);
    }
}

void write_attempt(const Attempt& attempt) {
    const auto own = static_cast<int32_t>(syscall(SYS_getpid));
    const FieldValue values[] = {
        FieldValue::of(Field::pid, static_cast<uint64_t>(attempt.pid)),
        // A child that could not become the program tells it itself.
        FieldValue::of(Field::parent, static_cast<uint64_t>(attempt.pid == own ? getppid() : own)),
        FieldValue::of(Field::path, attempt.path),
        FieldValue::of(Field::argument, attempt.arguments),
        FieldValue::of(Field::error, static_cast<uint64_t>(attempt.error)),
        FieldValue::of(Field::status, static_cast<uint64_t>(static_cast<unsigned>(attempt.status))),
        FieldValue::of(Field::count, attempt.places)};
    constexpr size_t kCount = sizeof values / sizeof values[0];
    if (session_state() == SessionState::open) {
        (void)note(EntryKind::asked_program, values, kCount);
    } else {
        (void)write_journal(EntryKind::asked_program, values, kCount, false);
    }
}

// An absolute path: the program may be elsewhere when it is read.
const char* absolute(const char* path, char* buffer, size_t size) {
    Text text{buffer, size};
    if (*path != '/') {
        char here[2048];
        const long length = syscall(SYS_getcwd, here, sizeof here);
        text.add(length > 0 && here[0] == '/' ? here : "").add("/");
    }
    text.add(path);
    return buffer;
}

// Once for a path, and for few of them: a program may try a lock ten times a second.
bool is_news(const char* path) {
    constexpr size_t kMost = 8;
    static uint32_t seen[kMost];
    static uint32_t count = 0;
    uint32_t hash = 2166136261U;  // FNV-1a
    for (const char* at = path; *at != '\0'; ++at) {
        hash = (hash ^ static_cast<unsigned char>(*at)) * 16777619U;
    }
    const uint32_t known = __atomic_load_n(&count, __ATOMIC_ACQUIRE);
    for (uint32_t i = 0; i < known && i < kMost; ++i) {
        if (seen[i] == hash) {
            return false;
        }
    }
    if (known >= kMost) {
        return false;
    }
    seen[known] = hash;
    __atomic_store_n(&count, known + 1, __ATOMIC_RELEASE);
    return true;
}

void note_file(EntryKind kind, const char* path, const char* when) {
    const KeepErrno keep;
    const SessionState state = session_state();
    if (state == SessionState::off || state == SessionState::unstarted || in_vfork_child() ||
        !is_news(path)) {
        return;
    }
    char buffer[kPath];
    FieldValue values[2 + kPythonFields] = {
        pid_field(), FieldValue::of(Field::path, absolute(path, buffer, sizeof buffer))};
    PythonFrames frames;
    const size_t count = 2 + frames.collect(values + 2);
    if (write_journal(kind, values, count, true)) {
        explain_while_it_runs(when);
    }
}

}  // namespace

void begin_step() {
    char exe[512];
    const BuildRole role = build_role(own_program(exe, sizeof exe));
    if (role == BuildRole::not_one || identity().below_host_compiler) {
        return;
    }
    step = true;
    if (role == BuildRole::step) {
        watch_opens();
    }
    Fields fields;
    add_identity(fields);
    const Limits limits;
    add_limits(fields, limits);
    add_program(fields);
    // The steps below another have its environment, or nearly so.
    if (identity().parent_role == BuildRole::not_one) {
        for_each_recorded(add_variable, &fields);
    }
    (void)write_journal(EntryKind::step_started, fields.values, fields.count, true);
}

void end_step(EndHow how, int status) {
    const KeepErrno keep;
    if (!step || is_fork_child() || in_vfork_child()) {
        return;
    }
    step = false;  // once: exit handlers may call _exit
    Fields fields;
    fields.add(pid_field());
    fields.add(FieldValue::of(Field::how, static_cast<uint64_t>(how)));
    fields.add(FieldValue::of(Field::status, static_cast<uint64_t>(static_cast<unsigned>(status))));
    uint64_t memory = 0;
    uint64_t mapped = 0;
    read_peaks(&memory, &mapped);
    fields.add(FieldValue::of(Field::peak_bytes, memory));
    fields.add(FieldValue::of(Field::mapped_bytes, mapped));
    if (status == 0) {
        (void)write_journal(EntryKind::step_ended, fields.values, fields.count, true);
        return;
    }
    const Limits limits;
    add_limits(fields, limits);
    if (opens_are_watched()) {
        fields.add(opens_field());
    }
    (void)write_journal(EntryKind::step_ended, fields.values, fields.count, false);
}

bool is_step() {
    return step;
}

void note_asked_programs(EndHow how, int status) {
    constexpr int kCannotRun = 126;
    constexpr int kNotFound = 127;
    const KeepErrno keep;
    if (session_state() != SessionState::open && !has_journal()) {
        return;
    }
    take_attempts(write_attempt);
    char exe[512];
    if ((status == kNotFound || status == kCannotRun) && is_shell(own_program(exe, sizeof exe))) {
        Fields fields;
        add_identity(fields);
        add_program(fields);
        fields.add(FieldValue::of(Field::how, static_cast<uint64_t>(how)));
        fields.add(FieldValue::of(Field::status, static_cast<uint64_t>(status)));
        (void)write_journal(EntryKind::step_ended, fields.values, fields.count, false);
    }
}

bool note_killed_child(int child, int status) {
    const KeepErrno keep;
    if (!has_journal()) {
        return false;
    }
    FieldValue values[4 + kLimitFields] = {
        FieldValue::of(Field::pid, static_cast<uint64_t>(child)),
        FieldValue::of(Field::parent, static_cast<uint64_t>(syscall(SYS_getpid))),
        FieldValue::of(Field::path, attempted_by(child)),
        FieldValue::of(Field::status, static_cast<uint64_t>(static_cast<unsigned>(status)))};
    const Limits limits;
    const size_t count = 4 + limits.fields(values + 4);
    return write_journal(EntryKind::asked_program, values, count, false);
}

void note_lock(const char* path) {
    const char* slash = strrchr(path, '/');
    if (strcmp(slash == nullptr ? path : slash + 1, "lock") == 0) {
        note_file(EntryKind::lock_held, path, "lock");
    }
}

void note_build_file(const char* path) {
    note_file(EntryKind::build_file, path, "build");
}

void forget_step() {
    step = false;
}

}  // namespace cudiag
