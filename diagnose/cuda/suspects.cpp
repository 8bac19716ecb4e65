#include "diagnose/cuda/suspects.h"

#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <utility>

#include "diagnose/say.h"

namespace cudiag {
namespace {

// Streams by number; each thread's own default stream is one of its own.
using StreamKey = std::pair<std::uint64_t, std::int32_t>;

StreamKey stream_of(const CudaLaunch& launch) {
    return {launch.stream, launch.stream == kPerThreadStream ? launch.tid : 0};
}

std::string stream_name(const CudaLaunch& launch) {
    return launch.stream == kLegacyStream      ? "default"
           : launch.stream == kPerThreadStream ? say("default of thread {}", launch.tid)
                                               : fmt::format("{:#x}", launch.stream);
}

// Ran, or was to run, when the error was reported.
bool is_pending(const RunningCase& c, const CudaLaunch& launch) {
    return !launch.done && !launch.capturing &&
           (c.failed == nullptr || launch.time_ns <= c.failed->time_ns);
}

// CUDIAG_SYNC waits right behind the launch, in the same thread.
const CudaLaunch* waited_for(const RunningCase& c) {
    const CudaLaunch* last = nullptr;
    for (const CudaLaunch& launch : c.process.launches) {
        if (launch.handle == c.failed->handle && launch.time_ns <= c.failed->time_ns &&
            (launch.tid == c.failed->tid || launch.tid == -1)) {
            last = &launch;
        }
    }
    return last;
}

using Pending = std::map<StreamKey, std::vector<const CudaLaunch*>>;

// The launches of the kernel that had the exception; of the same grid and block, if any was.
std::vector<const CudaLaunch*> launches_of(const GpuException& exception, const Pending& pending) {
    std::vector<const CudaLaunch*> same_kernel, same_shape;
    for (const auto& [stream, launches] : pending) {
        for (const CudaLaunch* launch : launches) {
            if (launch->graph || launch->kernel != exception.kernel) {
                continue;
            }
            same_kernel.push_back(launch);
            if (launch->shape.grid == exception.grid && launch->shape.block == exception.block) {
                same_shape.push_back(launch);
            }
        }
    }
    return same_shape.empty() ? same_kernel : same_shape;
}

void sort_by_age(std::vector<const CudaLaunch*>& launches) {
    std::stable_sort(launches.begin(), launches.end(),
                     [](const CudaLaunch* a, const CudaLaunch* b) { return a->ticks < b->ticks; });
}

}  // namespace

Suspects suspects_of(const RunningCase& c) {
    Suspects suspects;
    Pending pending;
    for (const CudaLaunch& launch : c.process.launches) {
        if (is_pending(c, launch)) {
            pending[stream_of(launch)].push_back(&launch);
            ++suspects.pending;
        }
    }
    suspects.streams = pending.size();
    // Of a stream whose oldest record was pending, older ones may have been as well.
    suspects.lost = c.process.launches_lost > 0 && !c.process.launches.empty() &&
                    is_pending(c, c.process.launches.front());
    const GpuException* exception = first_exception(c.process);
    if (exception != nullptr && !exception->kernel.empty()) {
        suspects.pinned = Pinned::core;
        suspects.launches = launches_of(*exception, pending);
        sort_by_age(suspects.launches);
        suspects.lost = false;
        return suspects;
    }
    if (c.failed != nullptr && c.failed->waited) {
        if (const CudaLaunch* launch = waited_for(c)) {
            suspects.pinned = Pinned::waited;
            suspects.launches = {launch};
            suspects.lost = false;
            return suspects;
        }
    }
    bool all_marked = !pending.empty() && c.process.tracked;
    for (const auto& [stream, launches] : pending) {
        all_marked = all_marked && launches.front()->mark != 0;
    }
    for (const auto& [stream, launches] : pending) {
        const std::size_t count = all_marked ? 1 : launches.size();
        suspects.launches.insert(suspects.launches.end(), launches.begin(),
                                 launches.begin() + static_cast<std::ptrdiff_t>(count));
    }
    // The GPU goes by age, and what was launched first has run the furthest. Which call reported
    // the error tells nothing: every one does from then on.
    sort_by_age(suspects.launches);
    suspects.pinned = suspects.launches.empty()                         ? Pinned::unseen
                      : all_marked                                      ? Pinned::marked
                      : suspects.launches.size() == 1 && !suspects.lost ? Pinned::only_one
                                                                        : Pinned::no;
    if (all_marked) {
        suspects.lost = false;
    }
    return suspects;
}

std::string launch_name(const CudaLaunch& launch) {
    if (!launch.graph) {
        return brief_kernel_name(launch.kernel);
    }
    return launch.kernels == 0 ? say("a CUDA graph")
                               : say("a CUDA graph of {} kernels", launch.kernels);
}

nlohmann::ordered_json launch_json(const CudaLaunch& launch, const FailedCudaCall* failed) {
    nlohmann::ordered_json told;
    told["kernel"] = launch_name(launch);
    if (!launch.graph) {
        told["signature"] = kernel_name(launch.kernel);
        told["grid"] = extent(launch.shape.grid);
        told["block"] = extent(launch.shape.block);
        if (launch.shape.shared_bytes != 0) {
            told["shared_bytes"] = launch.shape.shared_bytes;
        }
    }
    told["stream"] = stream_name(launch);
    if (failed != nullptr && failed->time_ns >= launch.time_ns) {
        told["us_before"] = (failed->time_ns - launch.time_ns) / 1000;
    }
    if (!launch.python.empty()) {
        const PythonFrame& frame = launch.python.front();
        told["python"] = say("{}:{} in {}", frame.file, frame.line, frame.function);
    }
    return told;
}

}  // namespace cudiag
