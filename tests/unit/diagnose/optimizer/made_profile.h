// Profiles made by hand: a training whose steps are known to the nanosecond.
#pragma once

#include <string>

#include "diagnose/optimizer/recorded.h"

namespace cudiag {

struct MadeTraining {
    std::uint64_t steps = 60;     // of the optimizer
    std::uint64_t profiled = 50;  // the first of them
    std::uint64_t kernels = 4;    // of an update
    std::uint64_t kernel_ns = 1'000'000;
    std::uint64_t gap_ns = 10'000;  // between them
    std::uint64_t period_ns = 10'000'000;
    std::uint64_t forward_kernels = 3;  // of the rest of a training step
    std::uint64_t forward_ns = 1'500'000;
    std::uint64_t host_ns = 200'000;   // in step()
    std::uint64_t lag_ns = 500'000;    // of the GPU behind the host
    std::uint64_t first_ns = 300'000;  // in the first step()
    std::string kernel =
        "void at::native::(anonymous namespace)::multi_tensor_apply_kernel<at::native::(anonymous "
        "namespace)::TensorListMetadata<4>, X>(X)";
    std::string text =
        "class\ttorch.optim.adamw.AdamW\nbase\ttorch.optim.adam.Adam\nfused\tNone\nforeach\tNone\n"
        "parameters\tfloat32\tcuda:0\t100\t1000000000\ntorch\t2.11.0+cu130\ncuda\t13.0";
};

// One device, one stream; launches and records agree.
inline RecordedProfile made(const MadeTraining& of = {}) {
    constexpr std::uint64_t kStart = 1'800'000'000'000'000'000;
    RecordedProfile profile;
    profile.pid = 4711;
    profile.path = "4711.prof";
    profile.mode = "optimizer";
    profile.names = {"a_forward_kernel", of.kernel};
    if (!of.text.empty()) {
        profile.optimizers.emplace(0, OptimizerText{of.text});
    }
    RecordedWindow window;
    window.begin = kStart;
    window.ended = true;
    window.launches_before = 7;
    window.dropped = 0;
    std::uint64_t launches = 7;
    std::uint32_t correlation = 1000;
    const auto add = [&](std::uint64_t begin, std::uint64_t length, std::uint32_t name) {
        DeviceRecord record{};
        record.begin = begin;
        record.end = begin + length;
        record.name = name;
        record.correlation = correlation += 3;
        record.stream = 7;
        record.blocks = 1000;
        record.threads = 256;
        profile.device.push_back(record);
        ++launches;
    };
    for (std::uint64_t i = 0; i < of.steps; ++i) {
        const std::uint64_t start = kStart + i * of.period_ns;
        const bool profiled = i < of.profiled;
        std::uint64_t device = start + of.lag_ns;
        for (std::uint64_t k = 0; profiled && k < of.forward_kernels; ++k) {
            add(device, of.forward_ns, 0);
            device += of.forward_ns;
        }
        StepRecord step{};
        step.profiled = profiled ? 1 : 0;
        step.number = i;
        step.begin = start + of.host_ns;
        step.end = step.begin + (i == 0 ? of.first_ns : of.host_ns);
        step.launches_before = launches;
        for (std::uint64_t k = 0; profiled && k < of.kernels; ++k) {
            add(device, of.kernel_ns, 1);
            device += of.kernel_ns + of.gap_ns;
        }
        step.launches_after = launches;
        profile.steps.push_back(step);
    }
    window.end = kStart + of.profiled * of.period_ns;
    window.launches_after = launches;
    profile.windows.push_back(window);
    profile.devices.push_back(
        {.ordinal = 0, .name = "NVIDIA H200", .uuid = "GPU-1", .driver = "580.159.04"});
    return profile;
}

}  // namespace cudiag
