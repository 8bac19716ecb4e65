#include <algorithm>

#include "diagnose/knowledge/cuda.h"
#include "diagnose/knowledge/knowledge.h"
#include "diagnose/loader/error_text.h"
#include "diagnose/loader/surroundings.h"
#include "diagnose/process/rules.h"
#include "diagnose/say.h"

namespace cudiag {
namespace {

std::string base_name(const std::string& path) {
    const auto slash = path.rfind('/');
    return slash == std::string::npos ? path : path.substr(slash + 1);
}

bool mentions(const PythonException& exception, const LoadFailure& failure) {
    return exception.message.find(failure.error) != std::string::npos;
}

bool known_library(const std::string& name) {
    return library_release(base_name(name)) != nullptr || !library_family(base_name(name)).empty();
}

// The directory of a path's package: the one below site-packages, else the file's own.
std::string package_directory(const std::string& path) {
    const std::string site = site_packages_of(path);
    if (site.empty() || path.size() <= site.size() + 1) {
        return path.substr(0, path.rfind('/'));
    }
    return path.substr(0, path.find('/', site.size() + 1));
}

// A package looked for a CUDA library in vain, went on with another build of itself, and that one
// lacks a symbol: then the lookup that the user saw is the consequence, and the probe the cause.
bool probe_before_lookup(const Process& process, const LoadFailure& probe) {
    if (probe.is_lookup || probe.python.empty() ||
        !known_library(parse_loader_error(probe.error).subject)) {
        return false;
    }
    return std::any_of(
        process.failures.begin(), process.failures.end(), [&](const LoadFailure& later) {
            const std::string file = parse_loader_error(later.error).subject;
            const bool same_package = std::any_of(
                probe.python.begin(), probe.python.end(), [&](const PythonFrame& frame) {
                    return package_directory(frame.file) == package_directory(file);
                });
            return later.is_lookup && later.time_ns >= probe.time_ns && same_package &&
                   std::any_of(process.exceptions.begin(), process.exceptions.end(),
                               [&](const PythonException& exception) {
                                   return mentions(exception, later);
                               });
        });
}

// The GPU ran, and something that it was told to do failed: a library that could not be loaded
// before is not why.
bool is_of_a_running_gpu(const PythonException& exception) {
    const int code = cuda_code_told_by(exception.type + ": " + exception.message);
    return code != 0 && !is_about_the_start(code);
}

}  // namespace

Tie tie_of(const Process& process, const LoadFailure& failure) {
    if (failure.error.empty()) {
        return Tie::none;
    }
    if (std::any_of(
            process.exceptions.begin(), process.exceptions.end(),
            [&](const PythonException& exception) { return mentions(exception, failure); })) {
        return Tie::named;
    }
    if (std::any_of(process.exceptions.begin(), process.exceptions.end(), is_of_a_running_gpu)) {
        return Tie::none;
    }
    if (failure.breakage) {
        return Tie::swallowed;
    }
    if (process.failed() && probe_before_lookup(process, failure)) {
        return Tie::swallowed;
    }
    if (!process.failed() || !process.exceptions.empty() || failure.is_lookup) {
        return Tie::none;
    }
    // A script that ends with a status of its own choosing (SystemExit leaves no exception behind)
    // says nothing of the probes before it. A process without Python, or one that ended without a
    // normal exit, had nothing else to say.
    if (is_python(process) && process.end == EndHow::exit) {
        return Tie::none;
    }
    const LoaderError error = parse_loader_error(failure.error);
    const bool last = &failure == &process.failures.back();
    constexpr std::uint64_t kJustBefore = 10'000'000'000;  // ns
    const bool recent =
        process.end_time_ns == 0 || process.end_time_ns - failure.time_ns < kJustBefore;
    return last && recent && known_library(error.subject) ? Tie::last_word : Tie::none;
}

bool may_be_about_cuda(const Process& process) {
    // Words of CUDA's and its libraries' own error texts (driver_types.h, cublas_api.h, nccl.h).
    constexpr const char* kWords[] = {
        "CUDA", "cuda", "CUDNN",  "cudnn",  "CUBLAS", "cublas",          "NCCL", "nccl",
        "NVML", "nvml", "driver", "device", "kernel", "resource handle", "GPU",  ".so"};
    return process.exceptions.empty() ||
           std::any_of(process.exceptions.begin(), process.exceptions.end(),
                       [&](const PythonException& exception) {
                           return std::any_of(
                               std::begin(kWords), std::end(kWords), [&](const char* word) {
                                   return exception.message.find(word) != std::string::npos ||
                                          exception.type.find(word) != std::string::npos;
                               });
                       });
}

std::optional<Finding> hidden_cause(const Process& process, const LoadFailure& failure,
                                    const Finding& cause, Tie tie) {
    if (!process.failed()) {
        return std::nullopt;
    }
    std::string seen;
    const std::vector<PythonFrame>* frames = nullptr;
    bool in_chain = tie == Tie::named;
    if (!process.exceptions.empty()) {
        const PythonException& last = process.exceptions.front();
        if (mentions(last, failure)) {
            return std::nullopt;  // the user saw the cause itself
        }
        seen = last.type + ": " + last.message;
        frames = &last.python;
    } else {
        // Without Python's word, a symbol lookup that failed later is the error that showed.
        for (const LoadFailure& later : process.failures) {
            if (later.is_lookup && later.time_ns > failure.time_ns) {
                seen = later.error;
                frames = &later.python;
            }
        }
    }
    if (seen.empty()) {
        return std::nullopt;
    }
    Finding finding;
    finding.slug = "hidden-cause";
    finding.severity = Severity::error;
    finding.confidence = in_chain ? Confidence::certain : Confidence::likely;
    finding.pid = process.pid;
    finding.tid = cause.tid;
    finding.argv = process.argv;
    finding.time_ns = process.end_time_ns != 0 ? process.end_time_ns : failure.time_ns;
    finding.title = say("the error shown, \"{}\", is a consequence: {}", seen, cause.title);
    finding.evidence["visible_error"] = seen;
    finding.evidence["hidden_error"] = failure.error;
    finding.evidence["hidden_by"] =
        in_chain ? say("it is in the chain of causes of the exception shown")
                 : say("it was caught, and the program went on without the library");
    finding.evidence["cause_slug"] = cause.slug;
    if (frames != nullptr) {
        finding.python = *frames;
    }
    finding.fixes = cause.fixes;
    finding.limits = in_chain ? ""
                              : say("that the later error follows from the earlier one is inferred "
                                    "from their order in one "
                                    "process");
    return finding;
}

}  // namespace cudiag
