// Begin: the constructor, after those of the libraries that the program needs. End: on_exit's
// handler, which runs last and knows the status, or the entries of intercept/exit.cpp; none of them
// when a signal or a raw system call ends the process.
#include "shim/lifecycle.h"

#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "record/keep_errno.h"
#include "shim/asked.h"
#include "shim/bindings.h"
#include "shim/build.h"
#include "shim/cuda/core_dump.h"
#include "shim/cuda/failed_calls.h"
#include "shim/cuda/progress.h"
#include "shim/cuda/runtime_errors.h"
#include "shim/explain.h"
#include "shim/forks.h"
#include "shim/journal.h"
#include "shim/modules.h"
#include "shim/nccl/calls.h"
#include "shim/originals.h"
#include "shim/profile.h"
#include "shim/python.h"
#include "shim/run_directory.h"
#include "shim/session.h"
#include "shim/start_environment.h"

extern "C" {
extern char** environ;
// Absent from musl, where the destructor below has to do.
int on_exit(void (*function)(int, void*), void* argument) __attribute__((weak));
}

namespace cudiag {
namespace {

bool begun = false;
bool finished = false;

bool run_directory_exists() {
    return access(run_directory(), F_OK) == 0;
}

// Only a process that has had children can be the root of a run of theirs.
bool has_had_children() {
    struct rusage usage {};

    return getrusage(RUSAGE_CHILDREN, &usage) == 0 &&
           (usage.ru_minflt != 0 || usage.ru_maxrss != 0);
}

void begin_afresh() {
    forget_all_asked();
    forget_session();
    forget_run_directory();
    forget_modules();
    forget_driver_calls();
    forget_nccl_calls();
    forget_runtime_errors();
    forget_rebinding();
    forget_explanation();
    forget_step();
    forget_last_exception();
    forget_profile();
    finished = false;
}

void at_exit(int status, void* /*argument*/) {
    finish(EndHow::exit, status & 0xff);
}

__attribute__((constructor)) void construct() {
    begin();
}

// musl does not tell the status; an interpreter that died of an exception is known.
__attribute__((destructor)) void destruct() {
    if (on_exit == nullptr) {
        finish(EndHow::exit, last_exception_noted() ? 1 : 0);
    }
}

}  // namespace

void begin() {
    const KeepErrno keep;
    if (__atomic_exchange_n(&begun, true, __ATOMIC_ACQ_REL)) {
        return;
    }
    remember_environment(environ);
    read_settings();
    (void)originals();
    if (session_state() == SessionState::off) {
        return;
    }
    read_profile_setting();
    watch_forks(begin_afresh);
    ask_for_core_dumps();
    rebind(When::at_start);
    if (on_exit != nullptr) {
        (void)on_exit(at_exit, nullptr);
    }
    begin_step();
}

void finish(EndHow how, int status) {
    const KeepErrno keep;
    const bool failed = how == EndHow::abort || status != 0;
    // exit() has its handlers for that (shim/profile.cpp).
    if (how == EndHow::exit_now) {
        end_profile();
    }
    const SessionState state = session_state();
    bool recorded = state == SessionState::open;
    if (state == SessionState::off) {
        return;
    }
    end_step(how, status);
    // The root of a healthy run of processes that were profiled has something to say.
    const bool of_profiles = !failed && !recorded && profile_is_wanted() && !in_vfork_child() &&
                             is_root() && has_had_children() && run_directory_exists();
    if (!failed && !recorded && !of_profiles && printing() != Printing::all) {
        // Nearly every process leaves here: with no system call if it was never asked to do
        // anything in a build and had no children.
        if ((journal_was_written() || has_had_children()) && !in_vfork_child() && is_root() &&
            has_journal()) {
            remove_journal();
        }
        return;
    }
    if (in_vfork_child()) {
        return;
    }
    // The libraries of a program that failed with CUDA in it are worth telling, whatever it failed
    // of, and so is who asked for a build. A fork child is its parent's business, and may hold a
    // lock of the loader's that nobody will ever release.
    if (failed && !recorded && !is_fork_child() &&
        (has_cuda_library() || (!journal_was_written() && is_root() && has_journal()))) {
        recorded = open_session();
    }
    // Asked to print all, the command must know that the run ended well.
    if (!failed && !recorded && printing() == Printing::all && !in_vfork_child() && is_root() &&
        has_journal()) {
        recorded = open_session();
    }
    if (failed) {
        note_asked_programs(how, status);
    }
    if (failed && recorded) {
        (void)note_modules();
    }
    end_progress();
    mark_end(how, status);
    if (!failed && !breakage_noted() && printing() != Printing::all) {
        if (is_root()) {
            remove_journal();
        }
        if (!has_profile() && !of_profiles) {
            discard_session(true);
            return;
        }
    }
    if (printing() == Printing::off ||
        (!recorded && !journal_was_written() && !has_had_children()) ||
        __atomic_exchange_n(&finished, true, __ATOMIC_ACQ_REL)) {
        return;
    }
    if (is_root() && run_directory_exists()) {
        explain_at_exit();
    }
}

void note_death(int child, int status) {
    const KeepErrno keep;
    const SessionState state = session_state();
    if (in_vfork_child()) {
        return;
    }
    (void)note_killed_child(child, status);
    // Noted when the child had something recorded, or this process has.
    if (state == SessionState::open || (state == SessionState::idle && run_directory_exists() &&
                                        !has_journal() && open_session())) {
        const FieldValue fields[] = {
            FieldValue::of(Field::pid, static_cast<uint64_t>(child)),
            FieldValue::of(Field::status, static_cast<uint64_t>(static_cast<unsigned>(status)))};
        (void)note(EntryKind::child_ended, fields, 2);
    }
}

void note_exception_at_end() {
    const KeepErrno keep;
    const SessionState state = session_state();
    if (state != SessionState::open && state != SessionState::idle) {
        return;
    }
    if (in_vfork_child() || !ends_by_exception()) {
        return;
    }
    // Of a program that has to do with CUDA, or with a build, the exception is worth knowing.
    if (state == SessionState::open ||
        (!is_fork_child() && (has_cuda_library() || (has_had_children() && has_journal())) &&
         open_session())) {
        note_last_exception();
    }
}

void note_exec(bool replaces) {
    const KeepErrno keep;
    if (session_state() != SessionState::open || in_vfork_child()) {
        return;
    }
    end_progress();
    if (replaces && !breakage_noted() && !has_profile()) {
        discard_session(false);
    } else {
        mark_end(EndHow::exec, 0);
    }
}

}  // namespace cudiag
