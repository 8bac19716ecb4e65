// What happened, without bytes: the reader's entries turned into nouns. Rules take these and
// nothing else from a run.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "diagnose/build/steps.h"
#include "diagnose/cuda/core_dump.h"
#include "diagnose/finding.h"
#include "diagnose/optimizer/recorded.h"
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
    bool native = false;  // of C++: it came to std::terminate; no chain and no frames
};

// A call of NCCL that gave an error, or made a communicator (result 0).
struct NcclCall {
    std::uint64_t time_ns = 0;
    std::int32_t tid = 0;
    std::string name;
    std::uint64_t result = 0;  // an ncclResult_t; of ncclCommGetAsyncError what it told
    std::string text;          // NCCL's own words for that result
    std::string last_error;    // its last warning of any kind, as ncclGetLastError gives it (2.13)
    std::string library;       // path of the libnccl that was called
    std::string caller;        // module that called; "" if unknown
    std::uint64_t caller_offset = 0;
    std::vector<PythonFrame> python;  // innermost first
    std::optional<std::uint64_t> rank, ranks;
    std::optional<std::int32_t> device;  // as the driver numbers it, where the caller had one
    std::uint64_t communicator = 0;
    std::uint64_t duration_ns = 0;
};

// The words for an error of CUDA's runtime were asked for: programs do that to show them.
struct RuntimeError {
    std::uint64_t time_ns = 0;
    std::int32_t tid = 0;
    std::uint64_t error = 0;  // a cudaError_t
    std::string text;
    std::string library;  // path of the libcudart
    std::string caller;   // module that asked; "" if unknown
    std::uint64_t caller_offset = 0;
    std::vector<PythonFrame> python;
};

// A context of CUDA was destroyed.
struct ContextGone {
    std::uint64_t time_ns = 0;
    std::string call;    // of the driver
    std::string caller;  // module that called; "" if unknown
    std::vector<PythonFrame> python;
};

// The libcuda that the process asked.
struct CudaDriver {
    std::string path;
    std::uint64_t version = 0;  // as cuDriverGetVersion gives it: 13000 is 13.0; 0 if it gave none
};

// The device on which a call failed, as the driver told it then.
struct CudaDevice {
    std::uint64_t ordinal = 0;
    std::string name;
    std::map<int, int> limits;  // by CUdevice_attribute; empty if it was not asked

    std::optional<int> limit(int attribute) const;
    int compute_capability() const;  // 90 for 9.0; 0 if not known
};

// A call of the driver that took long: it compiled code, or read much of it.
struct SlowCode {
    std::uint64_t time_ns = 0;  // when it was over
    std::int32_t tid = 0;
    std::string call;  // "cuLaunchKernel", of the first launch of a kernel
    std::uint64_t duration_ns = 0;
    std::string file;           // that holds the code; "" if it is in no file
    std::uint64_t address = 0;  // in it, as its own headers count; 0 with a whole file
    std::string code_kind;      // of code that was loaded: "PTX", "fatbin", "cubin"; else ""
    std::string kernel;         // mangled; "" if not about one
    std::optional<CudaDevice> device;
    std::vector<PythonFrame> python;
};

// How a kernel was launched.
struct LaunchShape {
    std::array<std::uint64_t, 3> grid{}, block{};
    std::uint64_t shared_bytes = 0;
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

    std::vector<std::string> log;         // what the driver wrote in its log about it (CUDA 12.9)
    std::string jit_log;                  // of the compiler in the driver
    std::string asked_name;               // a kernel that was looked up, a file of code
    std::string kernel;                   // mangled; "" if not known, or not about one
    std::uint64_t handle = 0;             // of a kernel, a graph or code
    std::optional<std::uint64_t> stream;  // of a launch
    std::optional<LaunchShape> shape;     // of a kernel's launch
    bool waited = false;  // the launch succeeded, and CUDIAG_SYNC's wait for it failed
    std::optional<std::uint64_t> bytes_asked, bytes_free, bytes_total;
    std::string code_file;           // that holds the code; "" if it is in no file
    std::uint64_t code_address = 0;  // in it, as its own headers count
    std::optional<CudaDevice> device;
    std::map<int, int> function_limits;  // by CUfunction_attribute; empty if not asked
};

// A launch of a kernel or a graph; the newest of each thread are kept.
struct CudaLaunch {
    std::uint64_t time_ns = 0, ticks = 0;  // not before
    std::uint64_t latest_ticks = 0;        // not after
    std::int32_t tid = 0;                  // -1: not known
    bool graph = false;
    std::uint64_t handle = 0;
    std::string kernel;         // mangled; "" if not known
    std::uint64_t kernels = 1;  // of a graph: as many as it has
    std::uint64_t stream = 0;   // kLegacyStream, kPerThreadStream or a handle
    LaunchShape shape;
    bool capturing = false;  // into a graph, and not executed
    bool done = false;       // a later wait, or the GPU's own mark, tells that it was finished
    std::uint32_t mark = 0;  // its number in its stream, with CUDIAG_TRACK=1; 0: none
    std::vector<PythonFrame> python;  // innermost first, with CUDIAG_TRACK=1 or CUDIAG_SYNC=1
};

// A stream of which the GPU itself told how far it has come (CUDIAG_TRACK=1).
struct StreamProgress {
    std::uint64_t stream = 0;
    std::int32_t tid = 0;  // of a thread's own default stream
    std::uint64_t launched = 0, finished = 0;
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
    std::vector<SlowCode> slow_code;
    std::vector<RuntimeError> runtime_errors;
    std::vector<ContextGone> contexts_gone;
    std::vector<NcclCall> nccl_calls;
    std::vector<CudaLaunch> launches;  // by time; those that the driver refused are not
    std::uint64_t launches_lost = 0;   // older ones, overwritten
    std::vector<StreamProgress> progress;
    std::string tracking;  // of CUDIAG_TRACK: why it was off, though asked for; "" if it was not
    bool tracked = false;  // CUDIAG_TRACK worked
    std::optional<GpuCore> gpu_core;  // where the driver was told to write one (CUDIAG_COREDUMP)
    // Why there is none, though CUDIAG_PROFILE was set; "" if that is not known.
    std::string no_profile;
    Losses lost;

    const std::vector<Module>& modules_at(
        std::uint64_t snapshot) const;  // the list itself, or an empty one
    bool failed() const;                // ended with a status other than 0, or by a signal
};

struct Facts {
    std::string run_directory;
    std::vector<Process> processes;         // the root first, then by start
    std::vector<ChildDeath> deaths;         // as `cudiag run` saw them, from run.json
    Build build;                            // the run's journal
    std::vector<RecordedProfile> profiles;  // in the order of their processes
    bool root_runs = false;                 // the root lives and has not said that it ends
    std::vector<std::string> unreadable;    // recordings that could not be read, each with why
};

// Never fails: what can't be read is listed in `unreadable`.
Facts gather_facts(const std::string& run_directory);
Process facts_of(const Recording& recording);

// A process that may have no recording: as far as it was recorded, else as it is now, if it runs.
Process process_of(const Facts& facts, std::int32_t pid);

}  // namespace cudiag
