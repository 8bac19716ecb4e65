#include "diagnose/optimizer/analyse.h"

#include <algorithm>
#include <map>
#include <utility>

#include "diagnose/elf/elf_file.h"
#include "diagnose/optimizer/attribute.h"
#include "diagnose/optimizer/busy.h"
#include "diagnose/optimizer/card.h"
#include "diagnose/optimizer/describe.h"
#include "diagnose/say.h"

namespace cudiag {
namespace {

// Linear between the two nearest, as numpy.percentile.
double quantile(const std::vector<double>& sorted, double at) {
    if (sorted.empty()) {
        return 0;
    }
    const double position = at * static_cast<double>(sorted.size() - 1);
    const auto low = static_cast<std::size_t>(position);
    const std::size_t high = std::min(low + 1, sorted.size() - 1);
    return sorted[low] + (sorted[high] - sorted[low]) * (position - static_cast<double>(low));
}

Times times_of(std::vector<double> values) {
    std::sort(values.begin(), values.end());
    Times times{.count = values.size(),
                .median = quantile(values, 0.5),
                .p95 = quantile(values, 0.95),
                .sum = 0};
    for (const double value : values) {
        times.sum += value;
    }
    return times;
}

double difference(std::uint64_t begin, std::uint64_t end) {
    return end > begin ? static_cast<double>(end - begin) : 0;
}

// CUpti_ActivityMemcpyKind (cupti_activity.h).
const std::string& copy_name(std::uint32_t kind) {
    static const std::string names[] = {say("copy"),
                                        say("copy host to device"),
                                        say("copy device to host"),
                                        say("copy host to array"),
                                        say("copy array to host"),
                                        say("copy array to array"),
                                        say("copy array to device"),
                                        say("copy device to array"),
                                        say("copy device to device"),
                                        say("copy host to host"),
                                        say("copy peer to peer")};
    return kind < std::size(names) ? names[kind] : names[0];
}

// Names by number: those of kernels as recorded, those of copies and fills behind them.
class Names {
  public:
    explicit Names(const RecordedProfile& recorded) {
        for (const std::string& name : recorded.names) {
            names_.push_back(demangle(name));
            kinds_.push_back(implementation_of_kernel(names_.back()));
        }
        unknown_ = add(say("a kernel whose name is not known"));
    }

    const KernelKinds& kinds() const { return kinds_; }

    std::size_t of(const DeviceRecord& record) {
        switch (static_cast<DeviceKind>(record.kind)) {
            case DeviceKind::copy:
                return add(copy_name(record.name));
            case DeviceKind::fill:
                return add(say("fill"));
            case DeviceKind::kernel:
                break;
        }
        return record.name < kinds_.size() ? record.name : unknown_;
    }

    std::vector<std::string> take() { return std::move(names_); }

  private:
    std::size_t add(const std::string& name) {
        const auto [at, is_new] = others_.emplace(name, names_.size());
        if (is_new) {
            names_.push_back(name);
        }
        return at->second;
    }

    std::vector<std::string> names_;
    KernelKinds kinds_;
    std::map<std::string, std::size_t> others_;
    std::size_t unknown_ = 0;
};

class Analysis {
  public:
    Analysis(const RecordedProfile& recorded, const std::vector<std::string>& card_directories)
        : recorded_{recorded}, directories_{card_directories}, names_{recorded} {}

    Profile run() {
        profile_.pid = recorded_.pid;
        profile_.mode = recorded_.mode;
        attribution_ = attribute(recorded_, names_.kinds());
        steps_ = recorded_.steps;
        describe();
        add_operations();
        add_steps();
        for (std::size_t i = 0; i < profile_.optimizers.size(); ++i) {
            summarise(i);
        }
        add_completeness();
        add_cost();
        compare_with_card();
        profile_.names = names_.take();
        return std::move(profile_);
    }

  private:
    // Optimizers as Python told them; where it told of none, what runs of kernels tell.
    void describe() {
        for (const StepRecord& step : steps_) {
            optimizers_ = std::max<std::size_t>(optimizers_, step.optimizer + std::size_t{1});
        }
        if (!recorded_.optimizers.empty()) {
            optimizers_ =
                std::max<std::size_t>(optimizers_, recorded_.optimizers.rbegin()->first + 1);
        }
        constexpr std::size_t kMost = 64;  // shim/profile.cpp
        optimizers_ = std::min(optimizers_, kMost);
        if (steps_.empty()) {
            KernelRuns runs = kernel_runs(recorded_, names_.kinds());
            steps_ = std::move(runs.steps);
            by_kernels_ = !steps_.empty();
            if (by_kernels_) {
                attribution_.step_of = std::move(runs.step_of);
                optimizers_ = std::max<std::size_t>(optimizers_, 1);
            }
        }
        for (std::size_t i = 0; i < optimizers_; ++i) {
            profile_.optimizers.push_back(describe_optimizer(text_of(i)));
        }
    }

    const OptimizerText& text_of(std::size_t optimizer) const {
        static const OptimizerText none;
        const auto found = recorded_.optimizers.find(optimizer);
        return found == recorded_.optimizers.end() ? none : found->second;
    }

    void add_operations() {
        std::vector<std::pair<std::uint64_t, std::uint64_t>> intervals;
        for (std::size_t i = 0; i < recorded_.device.size(); ++i) {
            const DeviceRecord& record = recorded_.device[i];
            profile_.operations.push_back({.begin = record.begin,
                                           .end = record.end,
                                           .kind = static_cast<DeviceOperation::Kind>(record.kind),
                                           .name = names_.of(record),
                                           .device = record.device,
                                           .stream = record.stream,
                                           .bytes = record.bytes,
                                           .blocks = record.blocks,
                                           .threads = record.threads,
                                           .step = attribution_.step_of[i]});
            intervals.emplace_back(record.begin, record.end);
            profile_.begin = profile_.begin == 0 ? record.begin : profile_.begin;
            profile_.end = std::max(profile_.end, record.end);
        }
        busy_ = BusyTimes{std::move(intervals)};
    }

    void add_steps() {
        for (const StepRecord& step : steps_) {
            const bool counted = step.launches_after > step.launches_before || step.profiled != 0;
            OptimizerStep added;
            added.optimizer = std::min<std::size_t>(step.optimizer, optimizers_ - 1);
            added.number = step.number;
            added.begin = step.begin;
            added.end = step.end;
            added.launches =
                counted ? std::optional{step.launches_after - step.launches_before} : std::nullopt;
            added.profiled = step.profiled != 0;
            profile_.steps.push_back(added);
            profile_.begin =
                profile_.begin == 0 ? step.begin : std::min(profile_.begin, step.begin);
            profile_.end = std::max(profile_.end, step.end);
        }
        std::vector<std::vector<std::pair<std::uint64_t, std::uint64_t>>> times(steps_.size());
        for (const DeviceOperation& operation : profile_.operations) {
            if (operation.step >= 0) {
                add_to_step(operation, profile_.steps[static_cast<std::size_t>(operation.step)]);
                times[static_cast<std::size_t>(operation.step)].emplace_back(operation.begin,
                                                                             operation.end);
            }
        }
        for (std::size_t i = 0; i < profile_.steps.size(); ++i) {
            OptimizerStep& step = profile_.steps[i];
            step.device_busy = BusyTimes{std::move(times[i])}.total();
            step.gaps = step.device_end - step.device_begin - step.device_busy;
            if (lacks_operations(i)) {
                forget_device(step);
            }
        }
        add_periods();
    }

    // Times of a part of a step's kernels would be taken for the whole's.
    bool lacks_operations(std::size_t index) const {
        const OptimizerStep& step = profile_.steps[index];
        const bool by_names = !attribution_.by_launch && !by_kernels_;
        return attribution_.partly_timed.count(static_cast<std::int64_t>(index)) != 0 ||
               (by_names && step.launches && step.kernels != *step.launches);
    }

    static void forget_device(OptimizerStep& step) {
        step.profiled = false;
        step.operations = step.kernels = 0;
        step.device_begin = step.device_end = step.device_busy = step.gaps = 0;
        step.copied_bytes = 0;
    }

    static void add_to_step(const DeviceOperation& operation, OptimizerStep& step) {
        ++step.operations;
        step.kernels += operation.kind == DeviceOperation::Kind::kernel ? 1 : 0;
        step.copied_bytes += operation.kind == DeviceOperation::Kind::copy ? operation.bytes : 0;
        step.device_begin =
            step.device_begin == 0 ? operation.begin : std::min(step.device_begin, operation.begin);
        step.device_end = std::max(step.device_end, operation.end);
    }

    void add_periods() {
        std::map<std::pair<std::size_t, std::uint64_t>, const OptimizerStep*> by_number;
        for (const OptimizerStep& step : profile_.steps) {
            by_number[{step.optimizer, step.number}] = &step;
        }
        for (OptimizerStep& step : profile_.steps) {
            const auto next = by_number.find({step.optimizer, step.number + 1});
            if (next == by_number.end() || next->second->begin <= step.begin) {
                continue;
            }
            step.period = next->second->begin - step.begin;
            if (step.device_begin != 0 && next->second->device_begin > step.device_begin) {
                step.device_period = next->second->device_begin - step.device_begin;
                step.period_busy = busy_.between(step.device_begin, next->second->device_begin);
            }
        }
    }

    // Profiled ones without the first, or all others if none was profiled; without those that wait
    // for something else (an evaluation, a checkpoint).
    std::vector<const OptimizerStep*> steady_of(std::size_t optimizer) const {
        std::vector<const OptimizerStep*> steps;
        for (const bool profiled : {true, false}) {
            for (const OptimizerStep& step : profile_.steps) {
                if (step.optimizer == optimizer && step.number > 0 && step.profiled == profiled) {
                    steps.push_back(&step);
                }
            }
            if (!steps.empty()) {
                break;
            }
        }
        constexpr double kOutlier = 4;
        const double median = times_of(durations(steps)).median;
        steps.erase(std::remove_if(steps.begin(), steps.end(),
                                   [&](const OptimizerStep* step) {
                                       return difference(step->begin, step->end) >
                                              kOutlier * median;
                                   }),
                    steps.end());
        return steps;
    }

    static std::vector<double> durations(const std::vector<const OptimizerStep*>& steps) {
        std::vector<double> values;
        values.reserve(steps.size());
        for (const OptimizerStep* step : steps) {
            values.push_back(difference(step->begin, step->end));
        }
        return values;
    }

    void summarise(std::size_t index) {
        Optimizer& optimizer = profile_.optimizers[index];
        for (const OptimizerStep& step : profile_.steps) {
            if (step.optimizer == index) {
                optimizer.steps = std::max(optimizer.steps, step.number + 1);
            }
        }
        for (const StepRecord& step : steps_) {
            if (step.optimizer == index && step.number == 0 && !by_kernels_) {
                optimizer.first = FirstStep{.took = step.end - std::min(step.begin, step.end),
                                            .loading = step.loading,
                                            .loads = step.loads,
                                            .allocating = step.allocating,
                                            .allocations = step.allocations};
            }
        }
        const std::vector<const OptimizerStep*> steps = steady_of(index);
        optimizer.steady_steps = steps.size();
        optimizer.host = times_of(durations(steps));
        summarise_device(steps, optimizer);
        summarise_period(steps, optimizer);
        summarise_kernels(index, optimizer);
        optimizer.traffic = traffic_of(text_of(index), optimizer);
        if (optimizer.traffic.known && optimizer.span.median > 0) {
            optimizer.gb_per_s =
                static_cast<double>(optimizer.traffic.total()) / optimizer.span.median;
        }
    }

    static void summarise_device(const std::vector<const OptimizerStep*>& steps,
                                 Optimizer& optimizer) {
        std::vector<double> busy;
        std::vector<double> span;
        std::vector<double> gaps;
        double kernels = 0;
        for (const OptimizerStep* step : steps) {
            if (step->operations > 0) {
                busy.push_back(static_cast<double>(step->device_busy));
                span.push_back(difference(step->device_begin, step->device_end));
                gaps.push_back(static_cast<double>(step->gaps));
            }
            kernels += static_cast<double>(step->kernels);
        }
        const auto count = static_cast<double>(std::max<std::size_t>(steps.size(), 1));
        optimizer.device = times_of(std::move(busy));
        optimizer.span = times_of(std::move(span));
        optimizer.gaps = times_of(std::move(gaps));
        optimizer.kernels_a_step = kernels / count;
    }

    // By the device where it is known: the host may run ahead of it.
    static void summarise_period(const std::vector<const OptimizerStep*>& steps,
                                 Optimizer& optimizer) {
        std::vector<double> of_host;
        std::vector<double> periods;
        std::vector<double> busy;
        for (const OptimizerStep* step : steps) {
            if (step->period) {
                of_host.push_back(static_cast<double>(*step->period));
            }
            if (step->device_period > 0) {
                periods.push_back(static_cast<double>(step->device_period));
                busy.push_back(static_cast<double>(step->period_busy) / periods.back());
            }
        }
        if (periods.empty()) {
            periods = std::move(of_host);
        }
        optimizer.period = times_of(std::move(periods));
        if (optimizer.period.count == 0) {
            return;
        }
        const bool by_device = optimizer.span.count > 0 && optimizer.kernels_a_step > 0;
        const double part = by_device ? optimizer.span.median : optimizer.host.median;
        optimizer.share = part / optimizer.period.median;
        if (!busy.empty()) {
            optimizer.busy_share = times_of(std::move(busy)).median;
        }
    }

    // Times by name over the steady steps, and whose kernels take most of it.
    void summarise_kernels(std::size_t index, Optimizer& optimizer) {
        std::map<std::size_t, std::pair<double, double>> by_name;  // count, ns
        std::map<Implementation, double> by_kind;
        double copies = 0;
        double copy_time = 0;
        for (const DeviceOperation& operation : profile_.operations) {
            if (operation.step < 0) {
                continue;
            }
            const OptimizerStep& step = profile_.steps[static_cast<std::size_t>(operation.step)];
            if (step.optimizer != index || step.number == 0) {
                continue;
            }
            const double time = difference(operation.begin, operation.end);
            auto& [count, sum] = by_name[operation.name];
            count += 1;
            sum += time;
            if (operation.kind == DeviceOperation::Kind::copy) {
                copies += 1;
                copy_time += time;
            } else if (operation.kind == DeviceOperation::Kind::kernel &&
                       operation.name < names_.kinds().size() && names_.kinds()[operation.name]) {
                by_kind[*names_.kinds()[operation.name]] += time;
            }
        }
        double steps = 0;
        for (const OptimizerStep& step : profile_.steps) {
            steps += step.optimizer == index && step.number > 0 && step.profiled ? 1 : 0;
        }
        steps = std::max(steps, 1.0);
        for (const auto& [name, times] : by_name) {
            optimizer.by_name.push_back({.name = name,
                                         .launches_a_step = times.first / steps,
                                         .time_a_step = times.second / steps,
                                         .mean = times.second / times.first});
        }
        std::sort(
            optimizer.by_name.begin(), optimizer.by_name.end(),
            [](const KernelTime& a, const KernelTime& b) { return a.time_a_step > b.time_a_step; });
        optimizer.copies_a_step = copies / steps;
        optimizer.copy_time_a_step = copy_time / steps;
        optimizer.implementation = implementation_of(index, optimizer, by_kind);
    }

    Implementation implementation_of(std::size_t index, const Optimizer& optimizer,
                                     const std::map<Implementation, double>& by_kind) const {
        if (optimizer.kernels_a_step == 0) {
            return expected_implementation(optimizer);
        }
        if (by_kind.empty()) {
            // torch's kernels of single operations are everybody's: only its own optimizers, and
            // only of many launches, are known to be a loop over them.
            const bool many =
                optimizer.kernels_a_step >= 2 * static_cast<double>(optimizer.tensors());
            return many && is_of_torch(text_of(index)) ? Implementation::for_loop
                                                       : Implementation::unknown;
        }
        const Implementation most =
            std::max_element(by_kind.begin(), by_kind.end(), [](const auto& a, const auto& b) {
                return a.second < b.second;
            })->first;
        return most == Implementation::apex && optimizer.name.rfind("deepspeed.", 0) == 0
                   ? Implementation::deepspeed
                   : most;
    }

    void add_completeness() {
        Completeness& complete = profile_.completeness;
        complete.device_timeline = !recorded_.windows.empty();
        complete.launches = attribution_.launches;
        complete.records = attribution_.records;
        complete.matched_by_launch = attribution_.by_launch;
        complete.out_of_range = recorded_.out_of_range;
        bool known = complete.device_timeline;
        std::uint64_t dropped = 0;
        for (const RecordedWindow& window : recorded_.windows) {
            complete.cupti = window.cupti;
            complete.cupti_version = window.cupti_version;
            complete.not_kept = window.not_kept;
            complete.shared_with_client = complete.shared_with_client || window.shared;
            known = known && window.dropped.has_value();
            dropped += window.dropped.value_or(0);
            profile_.cost.in_buffers = window.spent;
        }
        complete.dropped = known ? std::optional{dropped} : std::nullopt;
        for (const CuptiClient& client : recorded_.clients) {
            const std::string name = client.module.substr(client.module.rfind('/') + 1);
            if (client.error == 0 && !name.empty() &&
                std::count(complete.clients.begin(), complete.clients.end(), name) == 0) {
                complete.clients.push_back(name);
            }
        }
        for (const RecordedLack& lack : recorded_.lacks) {
            if (!complete.device_timeline && lack.call != "steps") {
                complete.why_not = lack.call.empty() ? say_known(lack.text)
                                                     : say("{} gave {}", lack.call, lack.text);
            }
        }
        if (!complete.device_timeline && complete.why_not.empty()) {
            complete.why_not = say("no kernel was launched");
        }
    }

    // Steps in the window against those behind it: what the recording itself cost.
    void add_cost() {
        std::vector<double> inside;
        std::vector<double> behind;
        for (const OptimizerStep& step : profile_.steps) {
            if (step.optimizer != 0 || step.number == 0 || !step.period) {
                continue;
            }
            (step.profiled ? inside : behind).push_back(static_cast<double>(*step.period));
        }
        // The shim records 12, the first of which does not count.
        constexpr std::size_t kEnoughInside = 10;
        constexpr std::size_t kEnoughBehind = 20;
        OwnCost& cost = profile_.cost;
        cost.steps_in_window = inside.size();
        cost.steps_after = behind.size();
        if (inside.size() >= kEnoughInside && behind.size() >= kEnoughBehind) {
            cost.period_in_window = times_of(std::move(inside)).median;
            cost.period_after = times_of(std::move(behind)).median;
        }
    }

    void compare_with_card() {
        for (const RecordedDevice& device : recorded_.devices) {
            const auto card = find_card(directories_, device.uuid, device.name, device.driver);
            profile_.devices.push_back(
                {.ordinal = device.ordinal,
                 .name = device.name,
                 .uuid = device.uuid,
                 .driver = device.driver,
                 .copy_gb_per_s = card ? std::optional{card->copy_gb_per_s.median} : std::nullopt,
                 .measured = card ? card->made : ""});
            for (std::size_t i = 0; card && i < profile_.optimizers.size(); ++i) {
                predict(*card, device.ordinal, i);
            }
        }
    }

    // Of parameters that all lie on this device, in a class whose fused kernel takes as long as
    // AdamW's.
    void predict(const Card& card, std::uint32_t ordinal, std::size_t index) {
        Optimizer& optimizer = profile_.optimizers[index];
        const OptimizerClass* const known = known_class(text_of(index));
        if (known == nullptr || !known->like_adamw || optimizer.parameters.empty()) {
            return;
        }
        const int torch = torch_release(index);
        double fused = 0;
        double limit = 0;
        double error = 0;
        for (const ParameterGroup& group : optimizer.parameters) {
            const WantedStep step{.elements = group.elements,
                                  .tensors = group.tensors,
                                  .dtype = group.dtype,
                                  // What torch 2.11 for CUDA 13.0 launches, whatever its
                                  // headers have for CUDA 13 (docs/gpu-results.md).
                                  .large_tables = false,
                                  .double_math = torch != 0 && torch <= 210,
                                  .runs = group.runs};
            const auto own = predict_fused(card, step);
            const auto best = predict_limit(card, step);
            if (group.device != "cuda:" + std::to_string(ordinal) || !own || !best) {
                return;
            }
            fused += own->milliseconds;
            limit += *best;
            error = std::max(error, own->error);
        }
        optimizer.fused_ms = fused;
        optimizer.fused_error = error;
        optimizer.limit_ms = limit;
    }

    // 100 * major + minor; 0: not known.
    int torch_release(std::size_t index) const {
        const std::string torch = text_of(index).first("torch");
        const auto dot = torch.find('.');
        const int major = std::atoi(torch.c_str());
        const int minor = dot == std::string::npos ? 0 : std::atoi(torch.c_str() + dot + 1);
        return 100 * major + minor;
    }

    const RecordedProfile& recorded_;
    const std::vector<std::string>& directories_;
    Names names_;
    Profile profile_;
    Attribution attribution_;
    std::vector<StepRecord> steps_;
    std::size_t optimizers_ = 0;
    bool by_kernels_ = false;
    BusyTimes busy_{{}};
};

}  // namespace

Profile analyse(const RecordedProfile& recorded, const std::vector<std::string>& card_directories) {
    return Analysis{recorded, card_directories}.run();
}

}  // namespace cudiag
