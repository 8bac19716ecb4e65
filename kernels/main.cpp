// cudiag-gpu: what `cudiag` has to ask a GPU, in a process of its own (it may fail in the driver,
// and takes memory of the GPU). Prints JSON for `cudiag`; people are told on stderr.
#include <fmt/core.h>
#include <CLI/CLI.hpp>

#include <algorithm>
#include <cstdio>
#include <exception>
#include <map>

#include "kernels/measure.h"

namespace cudiag {
namespace {

constexpr int kBadUsage = 2;
constexpr int kCouldNotRun = 3;

struct Options {
    bool probe = false;
    int device = 0;
    std::uint64_t elements = 0;
    std::uint64_t tensors = 1;
    AdamKind kind;
    int runs = 20;
};

// Who has no memory before main ends either way.
// NOLINTNEXTLINE(bugprone-throwing-static-initialization)
const std::map<std::string, AdamKind> kKinds = {
    {"float32", {.dtype = Dtype::float32}},
    {"bfloat16", {.dtype = Dtype::bfloat16}},
    {"float16", {.dtype = Dtype::float16}},
    {"bfloat16+master", {.dtype = Dtype::bfloat16, .master = true}},
    {"float16+master", {.dtype = Dtype::float16, .master = true}},
};

void print(const nlohmann::ordered_json& json) {
    fmt::print("{}\n", json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
}

MeasurePlan plan_of(const Options& options, std::uint64_t free_bytes) {
    MeasurePlan plan;
    if (options.elements == 0) {
        plan = standard_plan(free_bytes);
    } else {
        plan.sizes = {{.elements = options.elements, .tensors = options.tensors}};
        plan.kinds = {options.kind};
    }
    plan.runs = options.runs;
    return plan;
}

int run(const Options& options) {
    const Driver driver;
    if (options.probe) {
        auto gpus = nlohmann::ordered_json::array();
        for (int i = 0; i < count_gpus(driver); ++i) {
            gpus.push_back(to_json(probe(driver, i)));
        }
        print({{"gpus", gpus}});
        return 0;
    }
    const Gpu gpu = probe(driver, options.device);
    const Context context{driver, gpu.device};
    std::size_t free = 0;
    std::size_t total = 0;
    CUDIAG_GPU(driver, cuMemGetInfo_v2, &free, &total);
    const MeasurePlan plan = plan_of(options, free);
    const bool fits =
        !plan.sizes.empty() && bytes_of(plan.sizes.front(), plan.kinds.front()) <= free;
    if (!fits) {
        throw DriverError(
            fmt::format("{} has {} MB free, too little to measure this", gpu.name, free >> 20));
    }
    print(measure_adam(driver, gpu, plan));
    return 0;
}

int parse_and_run(int argc, char** argv) {
    Options options;
    std::string dtype = "float32";
    CLI::App app{"cudiag-gpu asks a GPU what `cudiag` wants to know. Use `cudiag bench adam`."};
    app.add_flag("--probe", options.probe, "What GPUs there are");
    app.add_option("--device", options.device, "As CUDA counts")->check(CLI::NonNegativeNumber);
    app.add_option("--elements", options.elements, "One size instead of all");
    app.add_option("--tensors", options.tensors)->check(CLI::PositiveNumber);
    app.add_option("--dtype", dtype)->check(CLI::IsMember(kKinds));
    app.add_option("--runs", options.runs)->check(CLI::Range(1, 1000));
    try {
        app.parse(argc, argv);
    } catch (const CLI::Success& success) {
        return app.exit(success);
    } catch (const CLI::ParseError& error) {
        fmt::print(stderr, "cudiag-gpu: {}\n", error.what());
        return kBadUsage;
    }
    options.kind = kKinds.at(dtype);
    if (options.elements != 0 && options.tensors > options.elements) {
        fmt::print(stderr, "cudiag-gpu: more tensors than elements\n");
        return kBadUsage;
    }
    return run(options);
}

}  // namespace
}  // namespace cudiag

int main(int argc, char** argv) {
    try {
        return cudiag::parse_and_run(argc, argv);
    } catch (const std::exception& error) {
        (void)std::fprintf(stderr, "cudiag-gpu: %s\n", error.what());
    }
    return cudiag::kCouldNotRun;
}
