#include "diagnose/cuda/running.h"

#include <cxxabi.h>
#include <fmt/core.h>

#include <cstdlib>
#include <memory>

#include "diagnose/knowledge/cuda.h"
#include "diagnose/knowledge/gpu_exceptions.h"
#include "diagnose/say.h"

namespace cudiag {
namespace {

bool sticks(std::uint64_t code) {
    const CudaError* known = cuda_error(static_cast<int>(code));
    return known != nullptr && known->sticky;
}

// After it every call gives it.
const FailedCudaCall* first_sticky(const Process& process) {
    for (const FailedCudaCall& call : process.cuda_failures) {
        if (sticks(call.error)) {
            return &call;
        }
    }
    return nullptr;
}

Told told_by_core(const GpuCore& core, const GpuException& exception) {
    constexpr int kLaunchFailed = 719;  // CUDA_ERROR_LAUNCH_FAILED: any exception of a kernel
    constexpr std::uint64_t kSecond = 1'000'000'000;
    const GpuExceptionKind* known = gpu_exception_kind(exception.code);
    Told told;
    told.code = known != nullptr ? known->error : kLaunchFailed;
    told.error = known != nullptr ? say("{} in the core dump of the GPU", known->name)
                                  : say("exception {} in the core dump of the GPU", exception.code);
    told.time_ns = core.timestamp_s * kSecond;
    return told;
}

}  // namespace

const GpuException* first_exception(const Process& process) {
    return process.gpu_core && !process.gpu_core->exceptions.empty()
               ? &process.gpu_core->exceptions.front()
               : nullptr;
}

std::optional<RunningCase> running_case_of(const Process& process) {
    std::optional<Told> told = process.failed() ? told_of(process) : std::nullopt;
    if (const FailedCudaCall* call = first_sticky(process)) {
        if (!told || told->code != static_cast<int>(call->error)) {
            told = told_by_call(*call);
        }
        told->call = call->name;
        told->inferred.clear();  // whatever the program ended of, it had lost its GPU
        return RunningCase{.process = process, .told = *told, .failed = call, .sticky = true};
    }
    // When it has written a core dump the driver aborts the process: no call comes back to tell.
    if (const GpuException* exception = first_exception(process)) {
        if (!told || !sticks(static_cast<std::uint64_t>(told->code))) {
            told = told_by_core(*process.gpu_core, *exception);
        }
        told->inferred.clear();
        return RunningCase{.process = process, .told = *told, .failed = nullptr, .sticky = true};
    }
    if (!told || told->code == 0 || is_about_the_start(told->code)) {
        return std::nullopt;
    }
    return RunningCase{.process = process,
                       .told = *told,
                       .failed = call_with(process, told->code),
                       .sticky = sticks(static_cast<std::uint64_t>(told->code))};
}

Finding begin_finding(const RunningCase& c, const char* slug, std::string title) {
    Finding finding;
    finding.slug = slug;
    finding.title = std::move(title);
    finding.confidence = c.told.inferred.empty() ? Confidence::certain : Confidence::likely;
    finding.limits = c.told.inferred.empty()
                         ? ""
                         : say("that the process ended of this is inferred: {}", c.told.inferred);
    finding.pid = c.process.pid;
    finding.tid = c.failed != nullptr ? c.failed->tid : c.told.tid;
    finding.argv = c.process.argv;
    finding.time_ns = c.failed != nullptr   ? c.failed->time_ns
                      : c.told.time_ns != 0 ? c.told.time_ns
                                            : c.process.end_time_ns;
    finding.python =
        c.failed != nullptr && !c.failed->python.empty() ? c.failed->python : c.told.python;
    finding.evidence["error"] = c.told.error;
    finding.evidence["code"] = c.told.code;
    if (const CudaError* known = cuda_error(c.told.code)) {
        finding.evidence["code_name"] = known->driver.empty() ? known->runtime : known->driver;
        finding.evidence["meaning"] = say_known(known->meaning);
    }
    finding.evidence["call"] = c.failed != nullptr   ? c.failed->name
                               : c.told.call.empty() ? say("not seen")
                                                     : c.told.call;
    if (c.failed != nullptr && !c.failed->log.empty()) {
        finding.evidence["driver_log"] = c.failed->log;
    }
    return finding;
}

std::string kernel_name(const std::string& mangled) {
    if (mangled.empty()) {
        return say("a kernel whose name is not known");
    }
    int status = 0;
    const std::unique_ptr<char, decltype(&std::free)> plain{
        abi::__cxa_demangle(mangled.c_str(), nullptr, nullptr, &status), &std::free};
    return status == 0 && plain != nullptr ? std::string{plain.get()} : mangled;
}

std::string brief_kernel_name(const std::string& mangled) {
    std::string full = kernel_name(mangled);
    if (mangled.empty() || full == mangled) {
        return full;
    }
    constexpr std::size_t kMostArguments = 24;
    std::string brief;
    std::string arguments;
    int depth = 0;
    for (const char letter : full) {
        depth += letter == '<' ? 1 : 0;
        (depth > 0 ? arguments : brief) += letter;
        depth -= letter == '>' && depth > 0 ? 1 : 0;
        if (depth == 0 && !arguments.empty()) {
            brief += arguments.size() <= kMostArguments ? arguments : "<...>";
            arguments.clear();
        }
    }
    // Of a template the return type stands before the name.
    const auto end = brief.find('(', 1);
    brief = brief.substr(0, end);
    const auto space = brief.find(' ');
    return space == std::string::npos || brief.find('<') < space ? brief : brief.substr(space + 1);
}

bool is_reset(const ContextGone& gone) {
    return gone.call.rfind("cuDevicePrimaryCtxReset", 0) == 0;
}

std::string extent(const std::array<std::uint64_t, 3>& dimensions) {
    return say("({}, {}, {})", dimensions[0], dimensions[1], dimensions[2]);
}

}  // namespace cudiag
