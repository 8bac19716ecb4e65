#include "diagnose/cuda_facts.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "diagnose/build/steps.h"
#include "diagnose/say.h"

namespace cudiag {
namespace {

std::array<std::uint64_t, 3> three(const EntryRead& entry, Field field) {
    std::array<std::uint64_t, 3> values{};
    std::size_t count = 0;
    for (const FieldRead& read : entry.fields) {
        if (read.field == field && count < values.size()) {
            values[count++] = read.number;
        }
    }
    return values;
}

std::map<int, int> limits_in(const EntryRead& entry, Field field) {
    std::map<int, int> limits;
    for (const FieldRead& read : entry.fields) {
        if (read.field == field) {
            limits[static_cast<int>(read.number >> 32)] =
                static_cast<int>(static_cast<std::uint32_t>(read.number));
        }
    }
    return limits;
}

std::optional<CudaDevice> device_of(const EntryRead& entry) {
    const auto ordinal = entry.number(Field::device_ordinal);
    if (!ordinal) {
        return std::nullopt;
    }
    return CudaDevice{.ordinal = *ordinal,
                      .name = std::string{entry.text(Field::value)},
                      .limits = limits_in(entry, Field::limit)};
}

SlowCode slow_code_of(const EntryRead& entry, const std::string& kernel) {
    return {.time_ns = entry.realtime_ns,
            .tid = static_cast<std::int32_t>(entry.tid),
            .call = std::string{entry.text(Field::name)},
            .duration_ns = entry.number(Field::duration_ns).value_or(0),
            .file = std::string{entry.text(Field::path)},
            .address = entry.number(Field::code_offset).value_or(0),
            .code_kind = std::string{entry.text(Field::type)},
            .kernel = kernel,
            .device = device_of(entry),
            .python = frames_of(entry)};
}

RuntimeError runtime_error_of(const EntryRead& entry) {
    return {.time_ns = entry.realtime_ns,
            .tid = static_cast<std::int32_t>(entry.tid),
            .error = entry.number(Field::error).value_or(0),
            .text = std::string{entry.text(Field::text)},
            .library = std::string{entry.text(Field::path)},
            .caller = std::string{entry.text(Field::caller)},
            .caller_offset = entry.number(Field::caller_offset).value_or(0),
            .python = frames_of(entry)};
}

FailedCudaCall failed_call_of(const EntryRead& entry) {
    FailedCudaCall call;
    call.time_ns = entry.realtime_ns;
    call.tid = static_cast<std::int32_t>(entry.tid);
    call.name = entry.text(Field::name);
    call.error = entry.number(Field::error).value_or(0);
    call.text = entry.text(Field::text);
    call.caller = entry.text(Field::caller);
    call.caller_offset = entry.number(Field::caller_offset).value_or(0);
    call.python = frames_of(entry);
    call.jit_log = entry.text(Field::type);
    call.asked_name = entry.text(Field::argument);
    call.handle = entry.number(Field::handle).value_or(0);
    call.stream = entry.number(Field::stream);
    if (entry.number(Field::grid)) {
        call.shape = LaunchShape{.grid = three(entry, Field::grid),
                                 .block = three(entry, Field::block),
                                 .shared_bytes = entry.number(Field::shared_bytes).value_or(0)};
    }
    call.waited = entry.number(Field::launched).value_or(0) == 1;
    call.bytes_asked = entry.number(Field::bytes_asked);
    call.bytes_free = entry.number(Field::bytes_free);
    call.bytes_total = entry.number(Field::bytes_total);
    call.code_file = entry.text(Field::path);
    call.code_address = entry.number(Field::code_offset).value_or(0);
    call.device = device_of(entry);
    call.function_limits = limits_in(entry, Field::function_limit);
    return call;
}

// Names of kernels by handle; the last one counts, since a handle may be given again.
class Kernels {
  public:
    void add(const EntryRead& entry) {
        const std::uint64_t handle = entry.number(Field::handle).value_or(0);
        if (const auto kernel = entry.number(Field::of_handle)) {
            names_[handle] = name(*kernel);
        } else {
            names_[handle] = entry.text(Field::name);
        }
    }

    std::string name(std::uint64_t handle) const {
        const auto found = names_.find(handle);
        return found == names_.end() ? std::string{} : found->second;
    }

  private:
    std::map<std::uint64_t, std::string> names_;
};

// Lines of the driver's log are written inside the call that failed, on its thread, just before its
// failure is noted.
class DriverLog {
  public:
    void add(const EntryRead& entry) {
        lines_[entry.tid].emplace_back(entry.realtime_ns, entry.text(Field::text));
    }

    std::vector<std::string> take(const EntryRead& failed) {
        constexpr std::uint64_t kJustBefore = 100'000'000;  // ns
        std::vector<std::string> taken;
        for (auto& [time, line] : lines_[failed.tid]) {
            if (failed.realtime_ns - time < kJustBefore) {
                taken.push_back(std::move(line));
            }
        }
        lines_[failed.tid].clear();
        return taken;
    }

  private:
    std::map<std::uint32_t, std::vector<std::pair<std::uint64_t, std::string>>> lines_;
};

std::uint64_t low(std::uint64_t word) {
    return static_cast<std::uint32_t>(word);
}

std::uint64_t high(std::uint64_t word) {
    return word >> 32;
}

LaunchShape shape_of(const HotRead& hot) {
    constexpr unsigned kBits = 21;  // record/format.h
    constexpr std::uint64_t kMask = (std::uint64_t{1} << kBits) - 1;
    const std::uint64_t block = hot.words[4];
    return {.grid = {low(hot.words[2]), high(hot.words[2]), low(hot.words[3])},
            .block = {block & kMask, block >> kBits & kMask, block >> 2 * kBits & kMask},
            .shared_bytes = high(hot.words[3])};
}

struct Sites {
    std::map<std::uint64_t, std::vector<PythonFrame>> frames;
    std::map<std::uint64_t, std::uint64_t> graph_kernels;
};

CudaLaunch launch_of(const HotRead& hot, const Kernels& kernels, const Sites& sites) {
    CudaLaunch launch;
    launch.time_ns = hot.realtime_ns;
    launch.ticks = hot.ticks;
    launch.latest_ticks = hot.latest_ticks;
    launch.tid = hot.tid == kSharedRing ? -1 : static_cast<std::int32_t>(hot.tid);
    launch.graph = hot.kind == static_cast<std::uint16_t>(HotKind::graph_launch);
    launch.handle = hot.words[0];
    launch.kernel = kernels.name(launch.handle);
    launch.stream = hot.words[1];
    launch.shape = launch.graph ? LaunchShape{} : shape_of(hot);
    launch.capturing = (hot.flags & kCapturing) != 0;
    launch.mark = static_cast<std::uint32_t>(low(hot.words[5]));
    if (const auto site = sites.frames.find(high(hot.words[5])); site != sites.frames.end()) {
        launch.python = site->second;
    }
    if (launch.graph) {
        const auto graph = sites.graph_kernels.find(launch.handle);
        launch.kernels = graph == sites.graph_kernels.end() ? 0 : graph->second;
    }
    return launch;
}

// Of a launch that is recorded before the wait. Of one context alone is a wait for it a wait for
// everything: launches do not tell theirs.
bool covers(const HotRead& wait, const CudaLaunch& launch, std::int32_t tid) {
    // A thread does not launch while it waits.
    const bool before_it = launch.tid == tid && tid != -1;
    if (!before_it && launch.latest_ticks >= wait.words[2]) {
        return false;
    }
    if (wait.words[1] == static_cast<std::uint64_t>(WaitedFor::context)) {
        return wait.words[3] <= 1;
    }
    return launch.stream == wait.words[0] &&
           (launch.stream != kPerThreadStream || (launch.tid == tid && tid != -1));
}

// A file of that name may be an earlier process's.
GpuCore core_of(const EntryRead& entry, const Process& process) {
    GpuCore core = read_gpu_core(std::string{entry.text(Field::path)});
    constexpr std::uint64_t kSecond = 1'000'000'000;
    if (core.timestamp_s != 0 && core.timestamp_s < process.start_time_ns / kSecond) {
        core.exceptions.clear();
        core.threads = 0;
        core.problem = say("it is older than this process");
    }
    return core;
}

// Launches by time, with what later records tell of them.
class Launches {
  public:
    void add(std::uint32_t ring, CudaLaunch launch) {
        last_of_thread_[ring] = all_.size();
        open_.push_back(all_.size());
        all_.push_back(std::move(launch));
    }

    void wait(const HotRead& hot) {
        const auto tid = hot.tid == kSharedRing ? -1 : static_cast<std::int32_t>(hot.tid);
        const auto covered = [&](std::size_t i) {
            all_[i].done = covers(hot, all_[i], tid);
            return all_[i].done;
        };
        open_.erase(std::remove_if(open_.begin(), open_.end(), covered), open_.end());
    }

    // The driver refused the launch before this in the same thread.
    void refuse(const HotRead& hot) {
        const auto last = last_of_thread_.find(hot.tid);
        if (last != last_of_thread_.end() && all_[last->second].handle == hot.words[2]) {
            refused_.push_back(last->second);
        }
    }

    std::vector<CudaLaunch> take() {
        std::vector<CudaLaunch> taken;
        std::sort(refused_.begin(), refused_.end());
        for (std::size_t i = 0; i < all_.size(); ++i) {
            if (!std::binary_search(refused_.begin(), refused_.end(), i)) {
                taken.push_back(std::move(all_[i]));
            }
        }
        return taken;
    }

  private:
    std::vector<CudaLaunch> all_;
    std::vector<std::size_t> open_, refused_;
    std::map<std::uint32_t, std::size_t> last_of_thread_;
};

void add_launches(const Recording& recording, const Kernels& kernels, const Sites& sites,
                  Process& process) {
    Launches launches;
    for (const HotRead& hot : recording.hot) {
        switch (static_cast<HotKind>(hot.kind)) {
            case HotKind::launch:
            case HotKind::graph_launch:
                launches.add(hot.tid, launch_of(hot, kernels, sites));
                break;
            case HotKind::waited:
                launches.wait(hot);
                break;
            case HotKind::call_failed:
                if (hot.words[4] == 1) {
                    launches.refuse(hot);
                }
                break;
        }
    }
    process.launches = launches.take();
    process.launches_lost = recording.lost.overwritten;
}

void add_progress(const std::vector<ProgressSlot>& marks, Process& process) {
    for (const ProgressSlot& slot : marks) {
        const bool per_thread = low(slot.stream) == kPerThreadStream && high(slot.stream) != 0;
        process.progress.push_back(
            {.stream = per_thread ? kPerThreadStream : slot.stream,
             .tid = per_thread ? static_cast<std::int32_t>(high(slot.stream)) : 0,
             .launched = slot.launched,
             .finished = slot.finished});
    }
    if (process.progress.empty()) {
        return;
    }
    // Of the default stream of several contexts, launches do not tell which.
    const auto slots_of = [&](const CudaLaunch& launch) {
        std::vector<const StreamProgress*> found;
        for (const StreamProgress& progress : process.progress) {
            if (progress.stream == launch.stream &&
                (progress.tid == 0 || progress.tid == launch.tid)) {
                found.push_back(&progress);
            }
        }
        return found;
    };
    for (CudaLaunch& launch : process.launches) {
        const auto slots = slots_of(launch);
        if (launch.mark != 0 && slots.size() == 1 && launch.mark <= slots.front()->finished) {
            launch.done = true;
        }
    }
    // What stands before a finished launch in its stream is finished, marked or not.
    std::set<std::pair<std::uint64_t, std::int32_t>> come_by;
    for (auto launch = process.launches.rbegin(); launch != process.launches.rend(); ++launch) {
        const auto stream =
            std::pair{launch->stream, launch->stream == kPerThreadStream ? launch->tid : 0};
        if (launch->mark != 0 && launch->done) {
            come_by.insert(stream);
        } else if (!launch->capturing && come_by.count(stream) > 0) {
            launch->done = true;
        }
    }
}

}  // namespace

std::optional<int> CudaDevice::limit(int attribute) const {
    const auto found = limits.find(attribute);
    return found == limits.end() ? std::nullopt : std::optional<int>{found->second};
}

int CudaDevice::compute_capability() const {
    constexpr int kMajor = 75;  // CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR (cuda.h)
    return limit(kMajor) ? *limit(kMajor) * 10 + limit(kMajor + 1).value_or(0) : 0;
}

void add_cuda_facts(const Recording& recording, Process& process) {
    Kernels kernels;
    DriverLog log;
    Sites sites;
    std::vector<ProgressSlot> marks = recording.progress;
    for (const EntryRead& entry : recording.entries) {
        switch (entry.kind) {
            case EntryKind::cuda_driver:
                process.cuda_driver =
                    CudaDriver{.path = std::string{entry.text(Field::path)},
                               .version = entry.number(Field::driver_version).value_or(0)};
                break;
            case EntryKind::cuda_function:
                kernels.add(entry);
                break;
            case EntryKind::cuda_log:
                log.add(entry);
                break;
            case EntryKind::cuda_graph:
                sites.graph_kernels[entry.number(Field::handle).value_or(0)] =
                    entry.number(Field::count).value_or(0);
                break;
            case EntryKind::cuda_site:
                sites.frames[entry.number(Field::index).value_or(0)] = frames_of(entry);
                break;
            case EntryKind::cuda_tracking:
                process.tracking = entry.text(Field::text);
                process.tracked = process.tracked || process.tracking.empty();
                // While it is there, the recording's own page is older.
                if (auto apart = read_marks(std::string{entry.text(Field::path)}); !apart.empty()) {
                    marks = std::move(apart);
                }
                break;
            case EntryKind::cuda_core:
                process.gpu_core = core_of(entry, process);
                break;
            case EntryKind::cuda_code_slow:
                process.slow_code.push_back(
                    slow_code_of(entry, entry.text(Field::argument).empty()
                                            ? kernels.name(entry.number(Field::handle).value_or(0))
                                            : std::string{entry.text(Field::argument)}));
                break;
            case EntryKind::runtime_error_asked:
                process.runtime_errors.push_back(runtime_error_of(entry));
                break;
            case EntryKind::cuda_context_gone:
                process.contexts_gone.push_back({.time_ns = entry.realtime_ns,
                                                 .call = std::string{entry.text(Field::name)},
                                                 .caller = std::string{entry.text(Field::caller)},
                                                 .python = frames_of(entry)});
                break;
            case EntryKind::cuda_call_failed: {
                FailedCudaCall call = failed_call_of(entry);
                call.log = log.take(entry);
                call.kernel = kernels.name(call.handle);
                process.cuda_failures.push_back(std::move(call));
                break;
            }
            default:
                break;
        }
    }
    add_launches(recording, kernels, sites, process);
    add_progress(marks, process);
}

}  // namespace cudiag
