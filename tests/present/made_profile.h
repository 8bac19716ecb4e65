// A profile made by hand: a foreach AdamW of 40 steps beside a model's kernels, for the tests of
// its presenters.
#pragma once

#include "diagnose/optimizer/profile.h"
#include "diagnose/say.h"

namespace cudiag::testing {

inline constexpr std::uint64_t kMadeBegin = 1'780'000'000'000'000'000;  // ns since 1970

inline Profile made_profile() {
    Profile profile;
    profile.pid = 4242;
    profile.mode = "optimizer";
    profile.names = {
        "void at::native::multi_tensor_apply_kernel<TensorListMetadata<2>, Lerp>(…)",
        "void at::native::multi_tensor_apply_kernel<TensorListMetadata<3>, AddcMul>(…)",
        "void gemm<\"bf16\" & 'tf32'>(float*)", say("copy device to device")};
    profile.devices.push_back({.ordinal = 0,
                               .name = "NVIDIA H200",
                               .uuid = "GPU-00010203",
                               .driver = "580.159.04",
                               .copy_gb_per_s = 4230,
                               .measured = "2026-12-02T19:20:00Z"});
    Optimizer optimizer;
    optimizer.name = "torch.optim.adamw.AdamW";
    optimizer.kind = "AdamW";
    optimizer.implementation = Implementation::foreach;
    optimizer.described = true;
    optimizer.parameters.push_back(
        {.dtype = "float32", .device = "cuda:0", .tensors = 310, .elements = 1'000'000'000});
    optimizer.traffic = {.known = true,
                         .parameters = 8'000'000'000,
                         .gradients = 4'000'000'000,
                         .state = 16'000'000'000};

    constexpr std::uint64_t kPeriod = 70'000'000;
    constexpr std::uint64_t kKernel = 1'800'000;
    constexpr std::uint64_t kGap = 50'000;
    constexpr int kKernels = 12;
    constexpr std::uint64_t kSteps = 40;
    for (std::uint64_t number = 0; number < kSteps; ++number) {
        const std::uint64_t begin = kMadeBegin + number * kPeriod;
        const std::uint64_t slow = number == 0 ? 9 : 1;  // the first loads its kernels
        profile.operations.push_back({.begin = begin + 1'000'000,
                                      .end = begin + 40'000'000,
                                      .name = 2,
                                      .stream = 7,
                                      .blocks = 1024,
                                      .threads = 256});
        OptimizerStep step;
        step.number = number;
        step.begin = begin + 38'000'000;
        step.end = begin + 39'000'000;
        step.launches = kKernels + 1;
        step.profiled = true;
        std::uint64_t at = begin + 40'100'000;
        step.device_begin = at;
        for (int kernel = 0; kernel < kKernels; ++kernel) {
            profile.operations.push_back({.begin = at,
                                          .end = at + kKernel,
                                          .name = kernel % 3 == 0 ? 1U : 0U,
                                          .stream = 7,
                                          .blocks = 320,
                                          .threads = 512,
                                          .step = static_cast<std::int64_t>(number)});
            at += kKernel + kGap * slow;
        }
        profile.operations.push_back({.begin = at,
                                      .end = at + kKernel,
                                      .kind = DeviceOperation::Kind::copy,
                                      .name = 3,
                                      .stream = 9,
                                      .bytes = 4096,
                                      .step = static_cast<std::int64_t>(number)});
        step.device_end = at + kKernel;
        step.kernels = kKernels;
        step.operations = kKernels + 1;
        step.device_busy = (kKernels + 1) * kKernel;
        step.gaps = step.device_end - step.device_begin - step.device_busy;
        step.period = kPeriod;
        profile.steps.push_back(step);
    }
    optimizer.steps = kSteps;
    optimizer.steady_steps = kSteps - 1;
    const auto times = [](double each) {
        return Times{
            .count = kSteps - 1, .median = each, .p95 = each * 1.02, .sum = each * (kSteps - 1)};
    };
    optimizer.host = times(1e6);
    optimizer.device = times((kKernels + 1) * kKernel);
    optimizer.gaps = times(kKernels * kGap);
    optimizer.span = times((kKernels + 1) * kKernel + kKernels * kGap);
    optimizer.period = times(kPeriod);
    optimizer.kernels_a_step = kKernels;
    optimizer.copies_a_step = 1;
    optimizer.by_name = {
        {.name = 0, .launches_a_step = 8, .time_a_step = 8 * kKernel, .mean = kKernel},
        {.name = 1, .launches_a_step = 4, .time_a_step = 4 * kKernel, .mean = kKernel},
        {.name = 3, .launches_a_step = 1, .time_a_step = kKernel, .mean = kKernel}};
    optimizer.gb_per_s = 28e9 / optimizer.span.median;
    optimizer.share = optimizer.span.median / kPeriod;
    optimizer.busy_share = 0.9;
    optimizer.fused_ms = 8.06;
    optimizer.fused_error = 0.05;
    optimizer.limit_ms = 6.66;
    profile.optimizers.push_back(optimizer);
    profile.completeness.device_timeline = true;
    profile.completeness.cupti = "/usr/lib/libcupti.so.13";
    profile.completeness.cupti_version = 130001;
    profile.completeness.launches = kSteps * (kKernels + 2);
    profile.completeness.records = kSteps * (kKernels + 2);
    profile.completeness.dropped = 0;
    profile.completeness.shared_with_client = true;
    profile.completeness.clients = {"libtorch_cpu.so"};
    profile.cost = {.in_buffers = 400'000,
                    .steps_in_window = 40,
                    .steps_after = 40,
                    .period_in_window = 70.1e6,
                    .period_after = 70e6};
    profile.begin = kMadeBegin;
    profile.end = kMadeBegin + kSteps * kPeriod;
    return profile;
}

}  // namespace cudiag::testing
