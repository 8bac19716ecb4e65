#include <fmt/core.h>

#include "diagnose/optimizer/words.h"
#include "diagnose/say.h"

namespace cudiag {

// Silent where the time is not the GPU's (the host, a debugger, DTensors, tensors so small that
// launches decide) and where nothing was measured on this very card.
std::optional<Finding> optimizer_not_fused(const ProfileCase& c, const Optimizer& optimizer) {
    constexpr double kTinyKernel = 5'000;  // ns: a launch takes as long
    constexpr double kWorthwhile = 0.01;   // of the whole step
    const bool other = optimizer.implementation == Implementation::foreach ||
                       optimizer.implementation == Implementation::for_loop;
    if (!other || !optimizer.fused_ms || !optimizer.fused_error || optimizer.period.count == 0 ||
        optimizer.kernels_a_step <= 0 || !host_burden(optimizer).empty() ||
        !device_decides(optimizer) ||
        optimizer.device.median / optimizer.kernels_a_step < kTinyKernel) {
        return std::nullopt;
    }
    const double now = optimizer.span.median;
    const double fused = *optimizer.fused_ms * 1e6;
    const double saved = now - fused;
    // By no more than what the prediction may be wrong, nothing is promised.
    if (now - fused * (1 + *optimizer.fused_error) < kWorthwhile * optimizer.period.median) {
        return std::nullopt;
    }
    Finding finding = finding_of(c, "optimizer-not-fused", Severity::warning);
    finding.confidence = Confidence::likely;
    finding.title = say(
        "{} takes {} of each {} step; fused=True takes {:.1f} ms on this card: {} ({:.0f} %) less "
        "a step",
        called(optimizer), time_text(now), time_text(optimizer.period.median), *optimizer.fused_ms,
        time_text(saved), 100 * saved / optimizer.period.median);
    finding.evidence = {{"optimizer", optimizer.name},
                        {"implementation", name_of(optimizer.implementation)},
                        {"device_ms", milliseconds(now)},
                        {"training_step_ms", milliseconds(optimizer.period.median)},
                        {"busy_percent", static_cast<std::uint64_t>(100 * *optimizer.busy_share)},
                        {"kernels_a_step", optimizer.kernels_a_step},
                        {"predicted_fused_ms", *optimizer.fused_ms},
                        {"error_percent", 100 * *optimizer.fused_error},
                        {"saved_ms", milliseconds(saved)}};
    for (const ProfiledDevice& device : c.profile.devices) {
        if (!device.measured.empty()) {
            finding.evidence["measured"] = say("{}, {}", device.name, device.measured);
        }
    }
    finding.fixes.push_back(
        {.text =
             say("let torch use its fused kernel: torch.optim.{}(..., fused=True)", optimizer.kind),
         .command = ""});
    finding.limits = say(
        "what fused=True takes is predicted from measurements on this card, not measured in this "
        "program; it is for floating-point parameters on the GPU");
    return finding;
}

}  // namespace cudiag
