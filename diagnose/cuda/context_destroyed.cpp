#include <algorithm>

#include "diagnose/cuda/running_rules.h"
#include "diagnose/cuda/suspects.h"
#include "diagnose/knowledge/cuda.h"
#include "diagnose/say.h"

namespace cudiag {
namespace {

struct Use {
    const ContextGone* gone;
    const FailedCudaCall* call;  // nullptr: cudart itself gave the error, without asking the driver
};

// Of a private context only what is about contexts: libraries make and destroy their own all the
// time, and what others then do wrong is nothing of theirs.
bool comes_of(const ContextGone& gone, const std::string& of_gone_context, bool by_driver) {
    return of_gone_context == "end" || (of_gone_context == "reset" && is_reset(gone)) ||
           (of_gone_context == "reset by cudart" && is_reset(gone) && !by_driver);
}

// The newest end of a context before the error that ended the program, and the first call behind it
// that gave this error: what came after it are its consequences.
std::optional<Use> first_use(const RunningCase& c) {
    const CudaError* known = cuda_error(c.told.code);
    const auto& calls = c.process.cuda_failures;
    const auto& ends = c.process.contexts_gone;
    for (auto gone = ends.rbegin(); known != nullptr && gone != ends.rend(); ++gone) {
        const auto call =
            std::find_if(calls.begin(), calls.end(), [&](const FailedCudaCall& failed) {
                return failed.time_ns > gone->time_ns &&
                       failed.error == static_cast<std::uint64_t>(c.told.code);
            });
        const bool by_driver = call != calls.end();
        const bool after = by_driver || (c.failed == nullptr && c.told.time_ns > gone->time_ns);
        if (after && comes_of(*gone, known->of_gone_context, by_driver)) {
            return Use{&*gone, by_driver ? &*call : nullptr};
        }
    }
    return std::nullopt;
}

// As people call it.
std::string name_of(const ContextGone& gone) {
    return is_reset(gone) ? say("{}, which is what cudaDeviceReset calls", gone.call) : gone.call;
}

std::string place_of(const ContextGone& gone) {
    if (!gone.python.empty()) {
        const PythonFrame& frame = gone.python.front();
        return say("{}:{} in {}", frame.file, frame.line, frame.function);
    }
    return gone.caller.empty() ? say("not seen") : gone.caller;
}

std::string after(std::uint64_t ns) {
    constexpr double kMillisecond = 1e6;
    const double ms = static_cast<double>(ns) / kMillisecond;
    return ms < 1000 ? say("{:.1f} ms", ms) : say("{:.1f} s", ms / 1000);
}

}  // namespace

std::optional<Finding> cuda_context_destroyed(const RunningCase& c) {
    constexpr int kDestroyed = 709;  // CUDA_ERROR_CONTEXT_IS_DESTROYED (cuda.h)
    const auto use = first_use(c);
    if (!use) {
        return std::nullopt;
    }
    RunningCase of_use = c;
    of_use.failed = use->call;
    const FailedCudaCall* call = use->call;
    const std::string time =
        after((call != nullptr ? call->time_ns : c.told.time_ns) - use->gone->time_ns);
    const std::string destroyer = name_of(*use->gone);
    Finding finding = begin_finding(
        of_use, "cuda-context-destroyed",
        call == nullptr ? say("CUDA gave an error ({}), {} after a context of this process was "
                              "destroyed by {}",
                              c.told.error, time, destroyer)
        : call->shape   ? say("the launch of {} failed, {} after a context of this process was "
                                "destroyed by {}",
                              brief_kernel_name(call->kernel), time, destroyer)
                        : say("{} failed, {} after a context of this process was destroyed by {}",
                              call->name, time, destroyer));
    if (call != nullptr && call->shape) {
        finding.evidence["kernel"] = kernel_name(call->kernel);
        finding.evidence["grid"] = extent(call->shape->grid);
        finding.evidence["block"] = extent(call->shape->block);
    }
    finding.evidence["destroyed_by"] = use->gone->call;
    finding.evidence["destroyed_at"] = place_of(*use->gone);
    finding.fixes.push_back(
        {.text = say("call it only when nobody in the process uses the GPU any more: with the "
                     "context go all memory, streams, events and kernels in it, also those of "
                     "torch and other libraries"),
         .command = ""});
    if (c.told.code != kDestroyed) {
        finding.confidence = Confidence::likely;
        finding.limits += (finding.limits.empty() ? "" : "; ") +
                          say("that what was used belonged to that context is inferred from the "
                              "order of the calls");
    }
    return finding;
}

}  // namespace cudiag
