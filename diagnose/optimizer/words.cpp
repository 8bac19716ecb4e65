#include "diagnose/optimizer/words.h"

#include <fmt/core.h>

#include <cmath>

#include "diagnose/say.h"

namespace cudiag {

std::string time_text(double nanoseconds) {
    constexpr double kMilli = 1e6;
    constexpr double kSecond = 1e9;
    return nanoseconds < kMilli         ? say("{:.0f} us", nanoseconds / 1e3)
           : nanoseconds < 100 * kMilli ? say("{:.1f} ms", nanoseconds / kMilli)
           : nanoseconds < kSecond      ? say("{:.0f} ms", nanoseconds / kMilli)
                                        : fmt::format("{:.2f} s", nanoseconds / kSecond);
}

double milliseconds(double nanoseconds) {
    return std::round(nanoseconds / 1e3) / 1e3;
}

std::string count_text(std::uint64_t count) {
    const auto number = static_cast<double>(count);
    return count >= 100'000'000 ? fmt::format("{:.1f}e9", number / 1e9)
           : count >= 100'000   ? fmt::format("{:.1f}e6", number / 1e6)
                                : fmt::format("{}", count);
}

std::string called(const Optimizer& optimizer) {
    return optimizer.implementation == Implementation::unknown
               ? optimizer.kind
               : say("{} ({})", optimizer.kind, name_of(optimizer.implementation));
}

Finding finding_of(const ProfileCase& c, const char* slug, Severity severity) {
    Finding finding;
    finding.slug = slug;
    finding.severity = severity;
    finding.pid = c.profile.pid;
    finding.argv = c.process.argv;
    finding.time_ns = c.profile.end;
    return finding;
}

bool device_decides(const Optimizer& optimizer) {
    // Half of an update's time may be waits for the host before they matter more than its kernels;
    // and a training step that is idle for a third is not made shorter by what is done in it.
    constexpr double kGaps = 0.3;
    constexpr double kBusy = 0.67;
    return optimizer.span.count > 0 && optimizer.span.median > 0 && optimizer.busy_share &&
           optimizer.gaps.median / optimizer.span.median<kGaps&& * optimizer.busy_share> kBusy;
}

std::string host_burden(const Optimizer& optimizer) {
    if (!optimizer.debugger.empty()) {
        return say("{} is active", optimizer.debugger);
    }
    for (const std::string& type : optimizer.tensor_types) {
        if (type == "DTensor") {
            return say("its parameters are DTensors");
        }
    }
    return {};
}

}  // namespace cudiag
