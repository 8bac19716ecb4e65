// An analysed profile of one process: where the time of its optimizer's steps goes. Plain data, for
// rules and for presenters; made by analyse.h. What is not known is absent (std::nullopt, -1, ""),
// never 0. Times of day are nanoseconds since 1970 of the machine's realtime clock, durations are
// nanoseconds.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "diagnose/optimizer/card.h"

namespace cudiag {

// How an optimizer's step is made on the GPU, as its kernels tell; where none was seen, as its
// class and flags do.
enum class Implementation : std::uint8_t {
    unknown,
    fused,      // torch: one kernel for the whole update of many tensors
    foreach,    // torch: a kernel for each operation on many tensors
    for_loop,   // torch: kernels for each operation on each tensor
    apex,       // apex's multi_tensor_apply
    deepspeed,  // DeepSpeed's FusedAdam, FusedLamb, FusedLion
    eight_bit,  // bitsandbytes, state in 8 bits
    cpu,        // computed by the CPU: DeepSpeedCPUAdam, parameters that lie on the CPU
    compiled,   // torch.compile'd: Triton
};

// Median, 95th percentile and sum over steps.
struct Times {
    std::uint64_t count = 0;
    double median = 0, p95 = 0, sum = 0;  // ns
};

// Parameters of one kind in an optimizer.
struct ParameterGroup {
    std::string dtype;   // "float32", "bfloat16"
    std::string device;  // "cuda:0", "cpu"
    std::uint64_t tensors = 0, elements = 0;
    std::vector<TensorRun> runs{};  // their sizes in order; none: not known
};

// One operation of the GPU, as CUPTI recorded it. Drawn as a box.
struct DeviceOperation {
    enum class Kind : std::uint8_t { kernel, copy, fill };

    std::uint64_t begin = 0, end = 0;  // time of day
    Kind kind = Kind::kernel;
    std::size_t name = 0;  // index in Profile::names
    std::uint32_t device = 0, stream = 0;
    std::uint64_t bytes = 0;    // of a copy or a fill
    std::uint64_t blocks = 0;   // of a kernel's grid
    std::uint32_t threads = 0;  // of a block
    std::int64_t step = -1;     // index in Profile::steps, -1: of no optimizer step
};

// One call of optimizer.step(), or of a program without Python one run of optimizer kernels.
struct OptimizerStep {
    std::size_t optimizer = 0;         // index in Profile::optimizers
    std::uint64_t number = 0;          // of this optimizer's steps in the process, from 0
    std::uint64_t begin = 0, end = 0;  // on the host, time of day; equal to the device's where
                                       // the step is known by its kernels alone
    std::optional<std::uint64_t>
        launches;                  // made on the host between begin and end (a graph is one)
    bool profiled = false;         // its device operations were recorded: what follows is known
    std::uint64_t operations = 0;  // kernels, copies and fills that belong to it
    std::uint64_t kernels = 0;
    std::uint64_t device_begin = 0, device_end = 0;  // first begin, last end; 0 without operations
    std::uint64_t device_busy = 0;                   // union of its operations' times, ns
    std::uint64_t gaps = 0;                          // device_end - device_begin - device_busy, ns
    std::uint64_t copied_bytes = 0;                  // of its copies
    std::optional<std::uint64_t> period;  // to the begin of this optimizer's next step, host, ns
    std::uint64_t device_period = 0;      // device_begin to the next step's, ns; 0: not known
    std::uint64_t period_busy = 0;        // of it with the device busy with anything, ns
};

// A kernel, or kind of copy, by name, over the steps that the medians are of.
struct KernelTime {
    std::size_t name = 0;  // index in Profile::names
    double launches_a_step = 0;
    double time_a_step = 0;  // ns
    double mean = 0;         // ns, of one
};

// Bytes that a step must read and write at least, by role, and how that is known. 0 with
// `known` false: not derived (no elements known, or an implementation whose traffic is not).
struct Traffic {
    bool known = false;
    std::uint64_t parameters = 0, gradients = 0, state = 0;  // read and written, bytes a step

    std::uint64_t total() const { return parameters + gradients + state; }
};

// The first step of an optimizer: what it did that the others need not.
struct FirstStep {
    std::uint64_t took = 0;     // ns, host
    std::uint64_t loading = 0;  // ns of it inside calls that load code or look kernels up
    std::uint64_t loads = 0;
    std::uint64_t allocating = 0;  // ns inside calls that allocate device memory
    std::uint64_t allocations = 0;
};

struct Optimizer {
    std::string name;  // the class as Python names it: "torch.optim.adamw.AdamW"; of a program
                       // without Python ""
    std::string kind;  // "AdamW": the last part; "optimizer kernels" without Python
    Implementation implementation = Implementation::unknown;
    std::string fused, foreach, capturable;  // as asked for: "True", "False", "None"; "" not told
    std::vector<ParameterGroup> parameters;
    std::vector<std::string> tensor_types;  // types other than Parameter and Tensor: "DTensor"
    bool described = false;                 // the above from `kind` on was read from Python
    std::string debugger;  // or a trace function that is active: "pydevd", "sys.settrace"; ""
    std::optional<std::uint64_t> cpu_threads;   // that torch would use, of a CPU optimizer
    std::optional<std::uint64_t> cpus_allowed;  // by the affinity mask
    std::string simd;         // of a CPU optimizer's library: "AVX512", "AVX2", "scalar"; ""
    std::string simd_source;  // what tells that
    std::string library;      // that built library, "" not known

    std::uint64_t tensors() const {
        std::uint64_t sum = 0;
        for (const ParameterGroup& group : parameters) {
            sum += group.tensors;
        }
        return sum;
    }

    std::uint64_t elements() const {
        std::uint64_t sum = 0;
        for (const ParameterGroup& group : parameters) {
            sum += group.elements;
        }
        return sum;
    }

    // Over the steady steps: profiled ones without the first, and without those more than 4 times
    // as long as the median.
    std::uint64_t steps = 0;         // in all, of this process
    std::uint64_t steady_steps = 0;  // that the following are of
    Times host;                      // begin to end on the host
    Times device;                    // device_busy
    Times span;                      // device_begin to device_end
    Times gaps;
    Times period;  // a whole training step
    double kernels_a_step = 0, copies_a_step = 0;
    double copy_time_a_step = 0;      // ns, device
    std::vector<KernelTime> by_name;  // most time first
    Traffic traffic;
    std::optional<double> gb_per_s;  // traffic / span
    std::optional<double> share;     // of the whole step: span / period, 0 to 1 and more
    std::optional<double>
        busy_share;  // of the whole step with the device busy: period_busy / period
    std::optional<FirstStep> first;
    // Time of this card's fused step for these parameters, and of our own kernel, by measurement:
    // from the card's file. With the relative error of the prediction.
    std::optional<double> fused_ms, fused_error, limit_ms;
};

// What was measured of the device itself.
struct ProfiledDevice {
    std::uint32_t ordinal = 0;
    std::string name, uuid, driver;       // "NVIDIA H200", "GPU-…", "580.159.04"; "" not known
    std::optional<double> copy_gb_per_s;  // measured on this card by cudiag bench adam
    std::string measured;                 // when: "2026-12-02T19:20:00Z"; "" not measured
};

// Is what was recorded all that happened?
struct Completeness {
    bool device_timeline = false;          // CUPTI was recording at some time
    std::string why_not;                   // without it: the reason, one line
    std::string cupti;                     // path of the libcupti used
    std::uint64_t cupti_version = 0;       // as cuptiGetVersion gives it
    std::uint64_t launches = 0;            // seen by the hooks in the windows
    std::uint64_t records = 0;             // launches that CUPTI's records account for
    std::optional<std::uint64_t> dropped;  // by CUPTI; nothing: the count could not be read
    std::uint64_t not_kept = 0;            // records for which the file had no room
    std::uint64_t out_of_range = 0;        // records whose times lie outside the run
    bool shared_with_client = false;       // torch.profiler or another client recorded too
    std::vector<std::string> clients;      // modules that CUPTI accepted as clients: file names
    bool matched_by_launch = false;  // steps and records by order of launch; else by kernels' names

    bool complete() const {
        return device_timeline && launches == records && dropped && *dropped == 0 &&
               not_kept == 0 && out_of_range == 0;
    }
};

// What the profiling itself cost.
struct OwnCost {
    std::uint64_t in_buffers = 0;  // ns, all of our work on CUPTI's buffers
    std::uint64_t steps_in_window = 0, steps_after = 0;
    std::optional<double> period_in_window, period_after;  // ns, median of a training step

    // The relative difference of these two; nothing: too few steps on one side.
    std::optional<double> relative() const {
        if (!period_in_window || !period_after || *period_after <= 0) {
            return std::nullopt;
        }
        return *period_in_window / *period_after - 1;
    }
};

struct Profile {
    std::int32_t pid = 0;
    std::string mode;                // CUDIAG_PROFILE: "optimizer" or "launches"
    std::vector<std::string> names;  // kernels demangled; "copy host to device" and so on
    std::vector<Optimizer> optimizers;
    std::vector<OptimizerStep> steps;         // by host begin
    std::vector<DeviceOperation> operations;  // by begin: all that was recorded, of steps or not
    std::vector<ProfiledDevice> devices;
    Completeness completeness;
    OwnCost cost;
    std::uint64_t begin = 0, end = 0;  // of what was recorded, time of day
};

const char* name_of(Implementation implementation);  // "fused", "foreach", "for-loop", "8-bit"

// "AdamW (foreach)", or its kind alone where how it is made is not known.
std::string called(const Optimizer& optimizer);

}  // namespace cudiag
