#include "diagnose/optimizer/words.h"
#include "diagnose/say.h"

namespace cudiag {

std::optional<Finding> optimizer_jit_first_step(const ProfileCase& c, const Optimizer& optimizer) {
    constexpr double kTimes = 5;
    constexpr double kLong = 50e6;  // ns
    if (!optimizer.first || optimizer.steady_steps < 3 || optimizer.host.median <= 0) {
        return std::nullopt;
    }
    const auto took = static_cast<double>(optimizer.first->took);
    const double median = optimizer.host.median;
    if (took < kTimes * median || took - median < kLong) {
        return std::nullopt;
    }
    const FirstStep& first = *optimizer.first;
    const auto loading = static_cast<double>(first.loading);
    const auto allocating = static_cast<double>(first.allocating);
    const double rest = std::max(0.0, took - median - loading - allocating);
    Finding finding = finding_of(c, "optimizer-jit-first-step", Severity::note);
    finding.title = say("the first step of {} took {}, the others {}", optimizer.kind,
                        time_text(took), time_text(median));
    if (loading >= allocating && loading >= rest) {
        finding.title += say(": {} went into loading its kernels", time_text(loading));
    } else if (allocating >= rest) {
        finding.title += say(": {} went into allocating memory", time_text(allocating));
    }
    finding.evidence = {{"optimizer", optimizer.name},
                        {"first_ms", milliseconds(took)},
                        {"median_ms", milliseconds(median)},
                        {"loading_ms", milliseconds(loading)},
                        {"loads", first.loads},
                        {"allocating_ms", milliseconds(allocating)},
                        {"allocations", first.allocations},
                        {"other_ms", milliseconds(rest)}};
    finding.limits = say(
        "it happens once, so it matters only to short runs; what the rest of the time went into "
        "(Python, torch.compile, state that is made) is not seen. Waits for other work of the GPU "
        "count as what waits for them");
    return finding;
}

}  // namespace cudiag
