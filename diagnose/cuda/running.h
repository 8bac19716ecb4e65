// One process in which a GPU that ran gave an error: what it was told, the driver's call that gave
// it, and what had been launched. Rules take a case and give perhaps a finding.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "diagnose/cuda/told.h"
#include "diagnose/facts.h"

namespace cudiag {

struct RunningCase {
    const Process& process;
    Told told;
    // The call that gave the error: of an error that sticks the first one, else the last one.
    // nullptr: none was seen, or none with this code.
    const FailedCudaCall* failed = nullptr;
    bool sticky = false;
};

// Of a process that failed and whose last words, or for want of words its last call of the driver,
// tell such an error; or of any process with an error that sticks, or a core dump of the GPU with
// an exception: it cannot use the GPU any more. `process` must outlive the case.
std::optional<RunningCase> running_case_of(const Process& process);

// The first exception in the core dump of the GPU; nullptr if there is no dump, or none in it.
const GpuException* first_exception(const Process& process);

// A finding with everything filled in that all findings of this case share: error, code, code_name,
// meaning, call, driver_log.
Finding begin_finding(const RunningCase& c, const char* slug, std::string title);

// "void oob<float>(float*)" of a mangled name; the name itself where it is not mangled, "a kernel
// whose name is not known" where there is none.
std::string kernel_name(const std::string& mangled);

// The same for a line of text: without return type and parameters, and with long template arguments
// as "<...>". "at::native::index_elementwise_kernel<...>".
std::string brief_kernel_name(const std::string& mangled);

// Of the primary context, which all of a process shares, not of one that somebody made for himself.
bool is_reset(const ContextGone& gone);

// "(4, 1, 1)".
std::string extent(const std::array<std::uint64_t, 3>& dimensions);

}  // namespace cudiag
