#include "diagnose/knowledge/optimizer.h"
#include "diagnose/optimizer/words.h"
#include "diagnose/say.h"

namespace cudiag {

// The GPU waits for the next launch longer than it computes. Nothing is promised in time: how fast
// the host would be is not known.
std::optional<Finding> optimizer_launch_bound(const ProfileCase& c, const Optimizer& optimizer) {
    constexpr double kMany = 20;
    constexpr double kTinyKernel = 20'000;  // ns
    constexpr double kWaits = 0.5;          // of the update's time
    constexpr double kShare = 0.02;         // of the whole step
    const double kernels = optimizer.kernels_a_step;
    if (optimizer.span.count == 0 || kernels < kMany || !optimizer.share ||
        *optimizer.share < kShare || optimizer.gaps.median < kWaits * optimizer.span.median ||
        optimizer.device.median / kernels > kTinyKernel) {
        return std::nullopt;
    }
    const double gap = optimizer.gaps.median / std::max(1.0, kernels - 1);
    Finding finding = finding_of(c, "optimizer-launch-bound", Severity::warning);
    finding.title =
        say("{} launches {:.0f} kernels of {} each, and the GPU waits for them {} of {} a step",
            called(optimizer), kernels, time_text(optimizer.device.median / kernels),
            time_text(optimizer.gaps.median), time_text(optimizer.span.median));
    finding.evidence = {{"optimizer", optimizer.name},
                        {"implementation", name_of(optimizer.implementation)},
                        {"kernels_a_step", kernels},
                        {"mean_kernel_us", milliseconds(optimizer.device.median / kernels) * 1e3},
                        {"mean_gap_us", milliseconds(gap) * 1e3},
                        {"host_ms", milliseconds(optimizer.host.median)},
                        {"device_ms", milliseconds(optimizer.span.median)},
                        {"busy_ms", milliseconds(optimizer.device.median)},
                        {"training_step_ms", milliseconds(optimizer.period.median)}};
    if (optimizer.tensors() > 0) {
        finding.evidence["parameters"] = optimizer.tensors();
        finding.evidence["elements_a_parameter"] = optimizer.elements() / optimizer.tensors();
    }
    const std::string burden = host_burden(optimizer);
    if (!burden.empty()) {
        finding.evidence["host_burden"] = burden;
    }
    if (!optimizer.debugger.empty()) {
        finding.fixes.push_back(
            {.text = say("run it without {}: it traces each line on the host", optimizer.debugger),
             .command = ""});
    }
    const OptimizerClass* const known = optimizer_class(optimizer.kind);
    const bool fewer = optimizer.implementation == Implementation::foreach ||
                       optimizer.implementation == Implementation::for_loop;
    if (fewer && known != nullptr && known->fused && burden.empty()) {
        finding.fixes.push_back(
            {.text = say("launch less: torch.optim.{}(..., fused=True) updates many "
                         "parameters with one kernel",
                         optimizer.kind),
             .command = ""});
    }
    finding.limits =
        say("how much shorter the step gets: the host's own work stays, and is not seen here");
    return finding;
}

}  // namespace cudiag
