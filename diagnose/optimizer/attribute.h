// Which of the GPU's operations belong to which step of an optimizer. The host hands launches over
// and goes on, so times do not tell; the order of launches does: the n-th launch that the hooks saw
// is the n-th that CUPTI has records of, as long as both have seen all.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <vector>

#include "diagnose/knowledge/optimizer.h"
#include "diagnose/optimizer/recorded.h"

namespace cudiag {

struct Attribution {
    std::vector<std::int64_t> step_of;    // of each DeviceRecord: index of its step, -1: of none
    bool by_launch = false;               // by the order of launches; else by the names of kernels
    std::uint64_t launches = 0;           // that the hooks saw in windows
    std::uint64_t records = 0;            // launches that records tell of
    std::set<std::int64_t> partly_timed;  // steps with a kernel whose times are not known
};

// `kinds`: of each kernel's name, whose it is (implementation_of_kernel).
using KernelKinds = std::vector<std::optional<Implementation>>;

Attribution attribute(const RecordedProfile& recorded, const KernelKinds& kinds);

// Of a program whose optimizer is not Python's: runs of optimizer kernels with no other kernel
// between them, if there are several that are alike. As steps of an optimizer that has no
// description, with the device's times; and the run of each record.
struct KernelRuns {
    std::vector<StepRecord> steps;
    std::vector<std::int64_t> step_of;
};

KernelRuns kernel_runs(const RecordedProfile& recorded, const KernelKinds& kinds);

}  // namespace cudiag
