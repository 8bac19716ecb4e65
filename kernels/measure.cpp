// Every step is measured behind a copy that is larger than the GPU's cache: its kernels are queued
// while the copy runs, so that the host's time is not in it, and it finds the cache as training
// leaves it, filled with something else. The copies are the ceiling, measured between the steps.
#include "kernels/measure.h"

#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "kernels/adam.h"
#include "kernels/images.h"

namespace cudiag {
namespace {

constexpr int kWarmUp = 3;
// A copy takes 1 ms on an H200, and queueing a launch up to 5 us in a virtual machine.
constexpr std::size_t kLaunchesBehindACopy = 150;
constexpr double kMega = 1e6;

// The memory of one size: an array for each role, tensors behind one another.
class Tensors {
  public:
    Tensors(const Driver& driver, const AdamSize& size, const AdamKind& kind, CuStream stream)
        : driver_{driver}, stream_{stream}, tensors_(size.tensors), steps_(size.tensors) {
        const std::size_t low = bytes_of(kind.dtype);
        const std::size_t high = kind.master ? sizeof(float) : low;
        // Small numbers of both widths: 0x3c003c00 is 0.0078 and, twice, 1 or 0.0078.
        fill(size, high, &AdamTensor::parameter, 0x3c003c00);
        fill(size, low, &AdamTensor::gradient, 0x3c003c00);
        fill(size, high, &AdamTensor::average, 0);
        fill(size, high, &AdamTensor::square, 0);
        if (kind.amsgrad) {
            fill(size, high, &AdamTensor::most_square, 0);
        }
        if (kind.master) {
            fill(size, low, &AdamTensor::low, 0);
        }
        for (std::uint64_t i = 0; i < size.tensors; ++i) {
            tensors_[i].elements = elements_of(size, i);
        }
        const CuPointer steps = take(kTensorAlignment * size.tensors, 0);
        for (std::uint64_t i = 0; i < size.tensors; ++i) {
            steps_[i] = steps + i * kTensorAlignment;
        }
    }

    const std::vector<AdamTensor>& all() const { return tensors_; }

    const std::vector<std::uint64_t>& steps() const { return steps_; }

  private:
    CuPointer take(std::uint64_t bytes, unsigned value) {
        buffers_.push_back(allocate(driver_, bytes));
        const CuPointer address = buffers_.back().get();
        CUDIAG_GPU(driver_, cuMemsetD32Async, address, value, bytes / sizeof(unsigned), stream_);
        return address;
    }

    void fill(const AdamSize& size, std::size_t bytes, std::uint64_t AdamTensor::*role,
              unsigned value) {
        const std::uint64_t stride = stride_of(size, bytes);
        const CuPointer first = take(stride * size.tensors, value);
        for (std::uint64_t i = 0; i < size.tensors; ++i) {
            tensors_[i].*role = first + i * stride;
        }
    }

    const Driver& driver_;
    CuStream stream_;
    std::vector<AdamTensor> tensors_;
    std::vector<std::uint64_t> steps_;
    std::vector<Buffer> buffers_;
};

// One way to make the step, and its times.
struct Candidate {
    nlohmann::ordered_json about;
    std::function<void()> step;
    std::function<std::size_t()> launches;
    std::vector<double> milliseconds;
};

class Bench {
  public:
    explicit Bench(const Driver& driver)
        : driver_{driver},
          stream_{make_stream(driver)},
          module_{load_module(driver, kCudiagAdamImage)},
          copy_{function_of(driver, module_, "cudiag_copy")},
          from_{allocate(driver, kCopyBytes)},
          to_{allocate(driver, kCopyBytes)},
          begin_{make_event(driver)},
          between_{make_event(driver)},
          end_{make_event(driver)} {
        CUDIAG_GPU(driver, cuMemsetD32Async, from_.get(), 1, kCopyBytes / sizeof(unsigned),
                   stream_.get());
    }

    CuStream stream() const { return stream_.get(); }

    // A copy and a step; notes both times if `counts`.
    void run(Candidate& candidate, bool counts) {
        for (std::size_t i = 0; i < candidate.launches() / kLaunchesBehindACopy; ++i) {
            copy();
        }
        CUDIAG_GPU(driver_, cuEventRecord, begin_.get(), stream());
        copy();
        CUDIAG_GPU(driver_, cuEventRecord, between_.get(), stream());
        candidate.step();
        CUDIAG_GPU(driver_, cuEventRecord, end_.get(), stream());
        CUDIAG_GPU(driver_, cuStreamSynchronize, stream());
        float copied = 0;
        float stepped = 0;
        CUDIAG_GPU(driver_, cuEventElapsedTime, &copied, begin_.get(), between_.get());
        CUDIAG_GPU(driver_, cuEventElapsedTime, &stepped, between_.get(), end_.get());
        if (counts) {
            copies_.push_back(2.0 * kCopyBytes / copied / kMega);
            candidate.milliseconds.push_back(stepped);
        }
    }

    const std::vector<double>& copies() const { return copies_; }  // GB/s

  private:
    void copy() {
        CuPointer to = to_.get();
        CuPointer from = from_.get();
        std::uint64_t count = kCopyBytes / (4 * sizeof(float));
        void* arguments[] = {&to, &from, &count};
        CUDIAG_GPU(driver_, cuLaunchKernel, copy_,
                   static_cast<unsigned>((count - 1) / kAdamThreads + 1), 1, 1, kAdamThreads, 1, 1,
                   0, stream(), arguments, nullptr);
    }

    const Driver& driver_;
    Stream stream_;
    Module module_;
    CuFunction copy_;
    Buffer from_;
    Buffer to_;
    Event begin_;
    Event between_;
    Event end_;
    std::vector<double> copies_;
};

nlohmann::ordered_json spread_json(const std::vector<double>& values) {
    const Quartiles spread = quartiles(values);
    return {{"low", spread.low},
            {"median", spread.median},
            {"high", spread.high},
            {"runs", values.size()}};
}

AdamPreparation usual_options() {
    AdamPreparation options{};
    options.lr = 1e-3;
    options.beta1 = 0.9;
    options.beta2 = 0.999;
    options.epsilon = 1e-8;
    options.weight_decay = 0.01;
    options.decoupled = 1;
    options.float_math = 1;
    return options;
}

// CUDA 12.1 and its driver first have 32 KiB of parameters.
constexpr int kLargeTablesFrom = 12010;

// Our kernel, and torch's ways: those that this driver can do, and of those dtypes that torch has.
std::vector<Candidate> candidates_for(const Driver& driver, const Gpu& gpu, const AdamKind& kind,
                                      const Tensors& tensors, CuStream stream) {
    std::vector<Candidate> candidates;
    AdamPreparation options = usual_options();
    CuPointer step = tensors.steps().front();
    std::memcpy(&options.step, &step, sizeof step);
    const auto ours = std::make_shared<AdamW>(driver, kCudiagAdamImage, kind);
    candidates.push_back(
        {.about = {{"implementation", "cudiag"},
                   {"dtype", std::string{name_of(kind.dtype)} + (kind.master ? "+master" : "")}},
         .step = [=, &tensors] { ours->step(tensors.all(), options, stream); },
         .launches = [=] { return ours->launches(); },
         .milliseconds = {}});
    for (const bool large : {false, true}) {
        for (const bool doubles : {false, true}) {
            // torch that launches large tables computes in float.
            if (kind.master || kind.amsgrad ||
                (large && (doubles || gpu.driver_cuda < kLargeTablesFrom))) {
                continue;
            }
            const auto torch = std::make_shared<ChunkedAdamW>(
                driver, kCudiagChunkedAdamImage,
                ChunkedKind{.dtype = kind.dtype, .large_tables = large, .double_math = doubles});
            candidates.push_back({.about = {{"implementation", "fused"},
                                            {"dtype", name_of(kind.dtype)},
                                            {"large_tables", large},
                                            {"double_math", doubles}},
                                  .step =
                                      [=, &tensors] {
                                          torch->step(tensors.all(), tensors.steps(), options,
                                                      stream);
                                      },
                                  .launches = [=] { return torch->launches(); },
                                  .milliseconds = {}});
        }
    }
    return candidates;
}

}  // namespace

nlohmann::ordered_json measure_adam(const Driver& driver, const Gpu& gpu, const MeasurePlan& plan) {
    Bench bench{driver};
    auto rows = nlohmann::ordered_json::array();
    auto checks = nlohmann::ordered_json::array();
    for (const AdamKind& kind : plan.kinds) {
        for (const AdamSize& size : plan.sizes) {
            if (size.checks && kind.dtype != Dtype::float32) {
                continue;
            }
            const Tensors tensors{driver, size, kind, bench.stream()};
            auto candidates = candidates_for(driver, gpu, kind, tensors, bench.stream());
            for (int run = 0; run < kWarmUp + plan.runs; ++run) {
                for (Candidate& candidate : candidates) {
                    bench.run(candidate, run >= kWarmUp);
                }
            }
            for (Candidate& candidate : candidates) {
                nlohmann::ordered_json row = candidate.about;
                row["elements"] = size.elements;
                row["tensors"] = size.tensors;
                row["launches"] = candidate.launches();
                row["bytes"] = size.elements * bytes_per_element(kind);
                row["ms"] = spread_json(candidate.milliseconds);
                (size.checks ? checks : rows).push_back(std::move(row));
            }
        }
    }
    return {{"card", to_json(gpu)},
            {"copy", {{"bytes", 2 * kCopyBytes}, {"gb_per_s", spread_json(bench.copies())}}},
            {"adamw", std::move(rows)},
            {"checks", std::move(checks)}};
}

}  // namespace cudiag
