#include "diagnose/optimizer/attribute.h"

#include <algorithm>
#include <map>

namespace cudiag {
namespace {

bool is_kernel(const DeviceRecord& record) {
    return record.kind == static_cast<std::uint16_t>(DeviceKind::kernel);
}

std::optional<Implementation> kind_of(const DeviceRecord& record, const KernelKinds& kinds) {
    return is_kernel(record) && record.name < kinds.size() ? kinds[record.name] : std::nullopt;
}

// Correlations of kernels, in the order of their launches; those of a graph are one.
std::vector<std::uint32_t> launches_in(const RecordedProfile& recorded) {
    std::vector<std::uint32_t> correlations;
    for (const DeviceRecord& record : recorded.device) {
        if (is_kernel(record)) {
            correlations.push_back(record.correlation);
        }
    }
    correlations.insert(correlations.end(), recorded.untimed.begin(), recorded.untimed.end());
    std::sort(correlations.begin(), correlations.end());
    correlations.erase(std::unique(correlations.begin(), correlations.end()), correlations.end());
    return correlations;
}

// The calls of a step that launch: the first and the last. What else was asked of the GPU between
// them belongs to it too.
struct Span {
    std::uint32_t first, last;
    std::int64_t step;
};

std::vector<Span> spans_of(const RecordedProfile& recorded, std::uint64_t launches_before,
                           const std::vector<std::uint32_t>& launches) {
    std::vector<Span> spans;
    for (std::size_t i = 0; i < recorded.steps.size(); ++i) {
        const StepRecord& step = recorded.steps[i];
        if (step.profiled == 0 || step.launches_before < launches_before ||
            step.launches_after <= step.launches_before ||
            step.launches_after - launches_before > launches.size()) {
            continue;
        }
        spans.push_back({.first = launches[step.launches_before - launches_before],
                         .last = launches[step.launches_after - launches_before - 1],
                         .step = static_cast<std::int64_t>(i)});
    }
    std::sort(spans.begin(), spans.end(),
              [](const Span& a, const Span& b) { return a.first < b.first; });
    return spans;
}

std::int64_t step_at(const std::vector<Span>& spans, std::uint32_t correlation) {
    const auto after =
        std::upper_bound(spans.begin(), spans.end(), correlation,
                         [](std::uint32_t value, const Span& span) { return value < span.first; });
    if (after == spans.begin()) {
        return -1;
    }
    const Span& span = *(after - 1);
    return correlation <= span.last ? span.step : -1;
}

// Profiled steps by their begin on the host.
class Begins {
  public:
    explicit Begins(const std::vector<StepRecord>& steps) : steps_{steps} {
        for (std::size_t i = 0; i < steps.size(); ++i) {
            if (steps[i].profiled != 0) {
                order_.push_back(i);
            }
        }
        std::sort(order_.begin(), order_.end(),
                  [&](std::size_t a, std::size_t b) { return steps[a].begin < steps[b].begin; });
    }

    // The last that had begun when this ran, -1: none. What was launched in it runs later, and
    // mostly before the next one begins.
    std::int64_t before(std::uint64_t time) const {
        const auto after = std::upper_bound(
            order_.begin(), order_.end(), time,
            [&](std::uint64_t value, std::size_t step) { return value < steps_[step].begin; });
        return after == order_.begin() ? -1 : static_cast<std::int64_t>(*(after - 1));
    }

    // A step that launches nothing may still copy (an optimizer that computes on the CPU).
    std::int64_t around(const DeviceRecord& record) const {
        const std::int64_t index = before(record.begin);
        if (index < 0 || is_kernel(record)) {
            return -1;
        }
        const StepRecord& step = steps_[static_cast<std::size_t>(index)];
        return step.launches_after == step.launches_before && record.begin <= step.end ? index : -1;
    }

  private:
    const std::vector<StepRecord>& steps_;
    std::vector<std::size_t> order_;
};

}  // namespace

Attribution attribute(const RecordedProfile& recorded, const KernelKinds& kinds) {
    Attribution result;
    result.step_of.assign(recorded.device.size(), -1);
    const std::vector<std::uint32_t> launches = launches_in(recorded);
    result.records = launches.size();
    for (const RecordedWindow& window : recorded.windows) {
        result.launches += window.ended ? window.launches_after - window.launches_before : 0;
    }
    result.by_launch = recorded.windows.size() == 1 && recorded.windows.front().ended &&
                       result.launches == result.records;
    const std::vector<Span> spans =
        result.by_launch ? spans_of(recorded, recorded.windows.front().launches_before, launches)
                         : std::vector<Span>{};
    for (const std::uint32_t correlation : recorded.untimed) {
        result.partly_timed.insert(step_at(spans, correlation));
    }
    const Begins begins{recorded.steps};
    for (std::size_t i = 0; i < recorded.device.size(); ++i) {
        const DeviceRecord& record = recorded.device[i];
        if (result.by_launch) {
            result.step_of[i] = step_at(spans, record.correlation);
        } else if (kind_of(record, kinds)) {
            result.step_of[i] = begins.before(record.begin);
        }
        if (result.step_of[i] < 0) {
            result.step_of[i] = begins.around(record);
        }
    }
    return result;
}

KernelRuns kernel_runs(const RecordedProfile& recorded, const KernelKinds& kinds) {
    constexpr std::uint64_t kLongestGap = 20'000'000;  // ns: another step begins behind it
    KernelRuns runs;
    runs.step_of.assign(recorded.device.size(), -1);
    std::map<std::uint64_t, std::uint64_t> of_length;
    bool open = false;
    for (std::size_t i = 0; i < recorded.device.size(); ++i) {
        const DeviceRecord& record = recorded.device[i];
        if (!kind_of(record, kinds)) {
            open = open && !is_kernel(record);
            continue;
        }
        if (!open || record.begin > runs.steps.back().end + kLongestGap) {
            StepRecord step{};
            step.profiled = 1;
            step.number = runs.steps.size();
            step.begin = record.begin;
            step.end = record.end;
            runs.steps.push_back(step);
            open = true;
        }
        StepRecord& step = runs.steps.back();
        step.end = std::max(step.end, record.end);
        ++step.launches_after;
        runs.step_of[i] = static_cast<std::int64_t>(step.number);
    }
    for (const StepRecord& step : runs.steps) {
        ++of_length[step.launches_after];
    }
    // Several, and most of them of one length: what comes so is a step.
    constexpr std::uint64_t kFewest = 3;
    const auto commonest =
        std::max_element(of_length.begin(), of_length.end(),
                         [](const auto& a, const auto& b) { return a.second < b.second; });
    if (runs.steps.size() < kFewest || commonest->second * 2 < runs.steps.size()) {
        runs.steps.clear();
        runs.step_of.assign(recorded.device.size(), -1);
    }
    return runs;
}

}  // namespace cudiag
