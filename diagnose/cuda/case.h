// One process that CUDA let down before it began: what it was told, and the driver and runtime that
// were to work together. Rules take a case and give perhaps a finding.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "diagnose/facts.h"
#include "diagnose/loader/driver_library.h"
#include "diagnose/machine.h"

namespace cudiag {

struct CudaCase {
    const Process& process;
    const Machine& machine;
    int code = 0;       // of CUresult and cudaError_t
    std::string error;  // the words in which the program, or the driver, told it
    std::string call;   // that gave it, "cuInit"; "" if not known
    std::uint64_t time_ns = 0;
    std::int32_t tid = 0;
    std::vector<PythonFrame> python;
    std::string
        inferred;  // from what it is inferred that the process ended of it; "" if it said so

    LoadState state;
    DriverLibrary driver;  // looked for even where nothing in the process asks for it by name
    std::optional<unsigned long long> driver_version;  // as cuDriverGetVersion gives it
    std::string driver_release;  // of the library's file, "550.54.14"; "" if its name has none
    std::string module_release;  // of the kernel module; "" if it is not loaded, or not seen

    std::string runtime;       // path of libcudart; "" if none is mapped (it may be linked in)
    std::string runtime_cuda;  // "13.0"; "" if not known
    std::string torch;         // "2.13.0+cu130"; "" without torch in the process

    bool compat() const;            // the driver's library is a forward-compatibility one
    bool from_variable() const;     // LD_LIBRARY_PATH chose it
    std::string directory() const;  // of the driver's library, as the search names it
    std::string rule() const;       // which rule chose it
    // The CUDA release that the driver brings: as it says itself, else by its branch; "" if
    // unknown.
    std::string driver_cuda() const;
    std::string variable(const std::string& name) const;  // at the start of the process
};

// Only of a process that failed, and only if its last words, or for want of words its last call of
// the driver, say that CUDA could not start. `process` and `machine` must outlive the case.
std::optional<CudaCase> cuda_case_of(const Process& process, const Machine& machine);

// A finding with everything filled in that all findings of this case share.
Finding begin_finding(const CudaCase& c, const char* slug, std::string title);

// The two sides as evidence: driver, driver_chosen_by, driver_release, driver_cuda, kernel_module;
// runtime, runtime_cuda, torch.
void add_driver(const CudaCase& c, nlohmann::ordered_json& evidence);
void add_runtime(const CudaCase& c, nlohmann::ordered_json& evidence);

// "unset LD_LIBRARY_PATH", or the variable without that directory.
std::string without_library_path(const CudaCase& c, const std::string& directory);

}  // namespace cudiag
