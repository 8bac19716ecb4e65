// What happened, without bytes: the reader's entries turned into nouns. Rules take these and
// nothing else from a run.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "diagnose/build/steps.h"
#include "diagnose/finding.h"
#include "record/reader.h"

namespace cudiag {

// One object mapped in a process, in link-map order.
struct Module {
    std::string path;  // as ld.so names it; the executable by its own path
    std::uint64_t base = 0;
    std::uint64_t tls_bytes = 0;
    std::uint64_t device = 0, inode = 0;
    bool shim = false;  // libcudiag.so itself
};

// A dlopen that failed and whose error the program read; or a symbol lookup that did (is_lookup).
struct LoadFailure {
    std::uint64_t time_ns = 0;
    std::int32_t tid = 0;
    bool is_lookup = false;
    bool breakage = false;  // the shim saw certain breakage, not a probe
    std::string asked;      // dlopen's argument
    std::uint64_t flags = 0;
    std::string error;   // dlerror's text
    std::string caller;  // module that called dlopen, "" if unknown
    std::uint64_t caller_offset = 0;
    std::vector<PythonFrame> python;  // innermost first
    std::uint64_t snapshot = 0;       // index into Process::snapshots, if there is one
};

// The exception that ended the interpreter, and the ones that it came from (causes and contexts),
// newest first.
struct PythonException {
    std::uint64_t time_ns = 0;
    std::string type;
    std::string message;
    std::vector<PythonFrame> python;
    std::uint64_t chain = 0;
};

// The libcuda that the process asked.
struct CudaDriver {
    std::string path;
    std::uint64_t version = 0;  // as cuDriverGetVersion gives it: 13000 is 13.0; 0 if it gave none
};

// A call of the driver that gave an error. Programs probe: on its own it says nothing of the end.
struct FailedCudaCall {
    std::uint64_t time_ns = 0;
    std::int32_t tid = 0;
    std::string name;         // as the driver exports it: cuMemAlloc_v2
    std::uint64_t error = 0;  // a CUresult
    std::string text;         // the driver's own words for that error, "" if it has none
    std::string caller;       // module that called: often libcudart; "" if unknown
    std::uint64_t caller_offset = 0;
    std::vector<PythonFrame> python;  // innermost first
};

struct ChildDeath {
    std::uint64_t time_ns = 0;
    std::int32_t pid = 0;
    int status = 0;  // as wait(2) gives it
};

struct Process {
    std::string recording;  // path of its file
    std::int32_t pid = 0, ppid = 0, root_pid = 0;
    std::uint64_t start_ticks = 0;
    std::uint64_t start_time_ns = 0;  // when recording began
    std::string exe;
    std::vector<std::string> argv;
    std::string cwd;
    std::map<std::string, std::string>
        environment;  // the variables that matter here, as at the start
    EndHow end = EndHow::none;
    int end_status = 0;
    std::uint64_t end_time_ns = 0;
    bool alive = false;  // still running when the facts were gathered
    std::map<std::uint64_t, std::vector<Module>> snapshots;
    std::vector<LoadFailure> failures;
    std::vector<PythonException> exceptions;
    std::vector<ChildDeath> deaths;
    std::vector<AskedProgram> asked_programs;
    std::optional<CudaDriver> cuda_driver;
    std::vector<FailedCudaCall> cuda_failures;  // in their order; repeats are left out
    Losses lost;

    const std::vector<Module>& modules_at(
        std::uint64_t snapshot) const;  // the list itself, or an empty one
    bool failed() const;                // ended with a status other than 0, or by a signal
};

struct Facts {
    std::string run_directory;
    std::vector<Process> processes;       // the root first, then by start
    std::vector<ChildDeath> deaths;       // as `cudiag run` saw them, from run.json
    Build build;                          // the run's journal
    bool root_runs = false;               // the root lives and has not said that it ends
    std::vector<std::string> unreadable;  // recordings that could not be read, each with why
};

// Never fails: what can't be read is listed in `unreadable`.
Facts gather_facts(const std::string& run_directory);
Process facts_of(const Recording& recording);

// A process that may have no recording: as far as it was recorded, else as it is now, if it runs.
Process process_of(const Facts& facts, std::int32_t pid);

}  // namespace cudiag
