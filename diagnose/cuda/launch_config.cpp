#include <algorithm>
#include <array>

#include "diagnose/cuda/gpu.h"
#include "diagnose/cuda/running_rules.h"
#include "diagnose/say.h"
#include "diagnose/units.h"

namespace cudiag {
namespace {

// CUresult and cudaError_t (cuda.h, driver_types.h).
constexpr int kInvalidValue = 1;
constexpr int kInvalidConfiguration = 9;
constexpr int kInvalidDeviceFunction = 98;
constexpr int kOutOfResources = 701;
constexpr int kCooperativeTooLarge = 720;
constexpr int kInvalidClusterSize = 912;

// CUdevice_attribute (cuda.h).
constexpr int kThreadsPerBlock = 1;
constexpr int kSharedPerBlock = 8;
constexpr int kRegistersPerBlock = 12;
constexpr int kMultiprocessors = 16;
constexpr int kSharedOptIn = 97;

// CUfunction_attribute (cuda.h).
constexpr int kMostThreads = 0;
constexpr int kStaticShared = 1;
constexpr int kRegisters = 4;
constexpr int kMostDynamicShared = 8;

constexpr std::uint64_t kWarp = 32;

// Saturates: what does not fit into 64 bits exceeds every limit.
std::uint64_t product(const std::array<std::uint64_t, 3>& dimensions) {
    std::uint64_t result = 1;
    for (const std::uint64_t dimension : dimensions) {
        if (__builtin_mul_overflow(result, dimension, &result)) {
            return UINT64_MAX;
        }
    }
    return result;
}

struct Launched {
    const FailedCudaCall& call;
    const LaunchShape& shape;

    std::optional<std::uint64_t> device(int attribute) const {
        const auto value = call.device ? call.device->limit(attribute) : std::nullopt;
        return value && *value > 0 ? std::optional<std::uint64_t>{*value} : std::nullopt;
    }

    std::optional<std::uint64_t> function(int attribute) const {
        const auto found = call.function_limits.find(attribute);
        return found == call.function_limits.end() || found->second < 0
                   ? std::nullopt
                   : std::optional<std::uint64_t>{found->second};
    }

    std::uint64_t threads() const { return product(shape.block); }
};

// A limit that a launch exceeds.
struct Exceeded {
    std::string what;  // follows the kernel's name
    std::string fix;
    std::string command;
};

using Check = std::optional<Exceeded> (*)(const Launched&);

struct Extent {
    const char* name;
    std::array<std::uint64_t, 3> LaunchShape::*dimensions;
    std::size_t index;
    int attribute;  // CUdevice_attribute
    std::string (*fix)();
};

std::string smaller_block() {
    return say("launch it with smaller blocks, and more of them");
}

std::string in_pieces() {
    return say("launch in pieces");
}

std::string other_axis() {
    return say(
        "let grid x, which may be much larger, count what this one counts, or launch in pieces; "
        "where the launch is a library's, give it the data (the batch) in pieces");
}

constexpr Extent kExtents[] = {
    {"block x", &LaunchShape::block, 0, 2, smaller_block},
    {"block y", &LaunchShape::block, 1, 3, smaller_block},
    {"block z", &LaunchShape::block, 2, 4, smaller_block},
    {"grid x", &LaunchShape::grid, 0, 5, in_pieces},
    {"grid y", &LaunchShape::grid, 1, 6, other_axis},
    {"grid z", &LaunchShape::grid, 2, 7, other_axis},
};

std::optional<Exceeded> zero_extent(const Launched& launch) {
    for (const Extent& extent : kExtents) {
        if ((launch.shape.*extent.dimensions)[extent.index] == 0) {
            return Exceeded{
                .what = say("{} is 0", extent.name),
                .fix = say("launch nothing where there is nothing to do: an empty input "
                           "gives a grid or a block of 0"),
                .command = ""};
        }
    }
    return std::nullopt;
}

std::optional<Exceeded> long_extent(const Launched& launch) {
    for (const Extent& extent : kExtents) {
        const std::uint64_t asked = (launch.shape.*extent.dimensions)[extent.index];
        const auto limit = launch.device(extent.attribute);
        if (limit && asked > *limit) {
            return Exceeded{.what = say("{} is {}, and {} allows {}", extent.name, asked,
                                        gpu_text(launch.call.device), *limit),
                            .fix = extent.fix(),
                            .command = ""};
        }
    }
    return std::nullopt;
}

std::optional<Exceeded> block_too_large(const Launched& launch) {
    const auto limit = launch.device(kThreadsPerBlock);
    if (!limit || launch.threads() <= *limit) {
        return std::nullopt;
    }
    return Exceeded{
        .what = say("a block of {} has {} threads, and {} allows {}", extent(launch.shape.block),
                    launch.threads(), gpu_text(launch.call.device), *limit),
        .fix = smaller_block(),
        .command = ""};
}

// More shared memory than 48 KB must be asked for, kernel by kernel (CUDA C++ Programming Guide,
// Shared Memory, compute capability 7.x and later).
std::optional<Exceeded> too_much_shared(const Launched& launch) {
    const std::uint64_t dynamic = launch.shape.shared_bytes;
    const std::uint64_t fixed = launch.function(kStaticShared).value_or(0);
    const auto most = launch.device(kSharedOptIn);
    const std::string asked = fixed == 0
                                  ? say("{} bytes of shared memory a block", dynamic)
                                  : say("{} bytes of shared memory a block ({} dynamic, {} static)",
                                        dynamic + fixed, dynamic, fixed);
    if (most && dynamic + fixed > *most) {
        return Exceeded{
            .what =
                say("it asks for {}, and {} has {}", asked, gpu_text(launch.call.device), *most),
            .fix = say(
                "let a block use less shared memory: smaller tiles, fewer stages of a pipeline"),
            .command = ""};
    }
    const auto allowed = launch.function(kMostDynamicShared);
    if (!allowed || dynamic <= *allowed) {
        return std::nullopt;
    }
    return Exceeded{
        .what =
            say("it asks for {} bytes of dynamic shared memory, and {} are allowed for this kernel "
                "until more is asked for",
                dynamic, *allowed),
        .fix = say("before the launch, in its source: cudaFuncSetAttribute(KERNEL, "
                   "cudaFuncAttributeMaxDynamicSharedMemorySize, {})",
                   dynamic),
        .command = ""};
}

std::optional<Exceeded> too_many_registers(const Launched& launch) {
    const auto most = launch.function(kMostThreads);
    const auto of_device = launch.device(kThreadsPerBlock);
    if (!most || *most == 0 || launch.threads() <= *most ||
        (of_device && launch.threads() > *of_device)) {
        return std::nullopt;
    }
    const auto registers = launch.function(kRegisters);
    const auto file = launch.device(kRegistersPerBlock);
    const std::uint64_t rounded = (launch.threads() + kWarp - 1) / kWarp * kWarp;
    const bool by_registers = registers && file && *registers * rounded > *file;
    const std::string why =
        by_registers ? say("{} threads with {} registers each need more than the {} of a "
                           "block",
                           launch.threads(), *registers, *file)
                     : say("it was compiled for at most {} threads a block, and is launched "
                           "with {}",
                           *most, launch.threads());
    return Exceeded{.what = why,
                    .fix = say("launch at most {} threads a block, or compile the kernel with "
                               "__launch_bounds__({}), which spills registers where they do not "
                               "suffice",
                               *most < kWarp ? *most : *most / kWarp * kWarp, launch.threads()),
                    .command = ""};
}

std::optional<Exceeded> cooperative_too_large(const Launched& launch) {
    if (launch.call.error != kCooperativeTooLarge) {
        return std::nullopt;
    }
    const std::uint64_t blocks = product(launch.shape.grid);
    const auto processors = launch.device(kMultiprocessors);
    return Exceeded{
        .what = say("a cooperative launch of {} blocks, more than {} can hold at once", blocks,
                    gpu_text(launch.call.device)),
        .fix = say(
            "launch no more blocks than cudaOccupancyMaxActiveBlocksPerMultiprocessor() gives for "
            "this kernel, block and shared memory, times {}",
            processors ? say("the {} multiprocessors", *processors)
                       : say("the number of multiprocessors")),
        .command = ""};
}

// In the order in which they are told: what holds for every kernel before what is this one's.
constexpr Check kChecks[] = {zero_extent,     long_extent,        block_too_large,
                             too_much_shared, too_many_registers, cooperative_too_large};

// The runtime gives the driver's 1 on as 9 where it is about a launch.
bool is_told_as(std::uint64_t driver_error, int told) {
    return driver_error == static_cast<std::uint64_t>(told) ||
           (told == kInvalidConfiguration && driver_error == kInvalidValue);
}

// The launch that the program was told of: the newest that the driver refused so, if no launch was
// refused otherwise after it.
const FailedCudaCall* refused_launch(const RunningCase& c) {
    constexpr std::uint64_t kJustBefore = 10'000'000'000;  // ns
    const auto& calls = c.process.cuda_failures;
    const auto newest = std::find_if(calls.rbegin(), calls.rend(), [](const FailedCudaCall& call) {
        return call.shape && !call.waited;
    });
    if (newest == calls.rend() || !is_told_as(newest->error, c.told.code)) {
        return nullptr;
    }
    const bool recent = c.told.time_ns == 0 || c.told.time_ns < newest->time_ns + kJustBefore;
    // Of 1 there are many causes: a call that is no launch may have given the one that was told.
    const bool sure = c.told.code != kInvalidValue || c.failed == nullptr || c.failed == &*newest;
    return recent && sure ? &*newest : nullptr;
}

bool needs_a_launch(int code) {
    return code == kInvalidValue || code == kInvalidConfiguration || code == kInvalidDeviceFunction;
}

bool is_of_launches(int code) {
    return needs_a_launch(code) || code == kOutOfResources || code == kCooperativeTooLarge ||
           code == kInvalidClusterSize;
}

void add_launch(const Launched& launch, nlohmann::ordered_json& evidence) {
    evidence["kernel"] = kernel_name(launch.call.kernel);
    evidence["grid"] = extent(launch.shape.grid);
    evidence["block"] = extent(launch.shape.block);
    evidence["dynamic_shared_bytes"] = launch.shape.shared_bytes;
    const auto add = [&](const char* key, const std::optional<std::uint64_t>& value) {
        if (value) {
            evidence[key] = *value;
        }
    };
    add("static_shared_bytes", launch.function(kStaticShared));
    add("registers", launch.function(kRegisters));
    add("most_threads_of_kernel", launch.function(kMostThreads));
    add("most_dynamic_shared_bytes", launch.function(kMostDynamicShared));
    add_gpu(launch.call.device, evidence);
    add("device_threads", launch.device(kThreadsPerBlock));
    add("device_registers", launch.device(kRegistersPerBlock));
    add("device_shared_bytes", launch.device(kSharedPerBlock));
    add("device_shared_opt_in_bytes", launch.device(kSharedOptIn));
}

std::string title_of(const Launched& launch, const std::vector<Exceeded>& exceeded) {
    const std::string kernel = brief_kernel_name(launch.call.kernel);
    if (!exceeded.empty()) {
        return say("the launch of {} was refused: {}", kernel, exceeded.front().what);
    }
    if (!launch.call.log.empty()) {
        return say("the launch of {} was refused: {}", kernel, launch.call.log.front());
    }
    return say("the launch of {} was refused ({}); it exceeds no limit that is known", kernel,
               launch.call.text.empty() ? "invalid argument" : launch.call.text);
}

Finding without_launch(const RunningCase& c) {
    Finding finding =
        begin_finding(c, "cuda-launch-config",
                      say("a launch was refused ({}); which one was not seen", c.told.error));
    finding.confidence = Confidence::likely;
    finding.limits += (finding.limits.empty() ? "" : "; ") +
                      say("neither the kernel nor its grid and block were seen");
    return finding;
}

}  // namespace

std::optional<Finding> cuda_launch_config(const RunningCase& c) {
    if (c.sticky || !is_of_launches(c.told.code)) {
        return std::nullopt;
    }
    const FailedCudaCall* call = refused_launch(c);
    if (call == nullptr) {
        return needs_a_launch(c.told.code) ? std::nullopt
                                           : std::optional<Finding>{without_launch(c)};
    }
    const Launched launch{.call = *call, .shape = *call->shape};
    std::vector<Exceeded> exceeded;
    for (const Check check : kChecks) {
        if (auto found = check(launch)) {
            exceeded.push_back(std::move(*found));
        }
    }
    RunningCase of_launch = c;
    of_launch.failed = call;
    Finding finding = begin_finding(of_launch, "cuda-launch-config", title_of(launch, exceeded));
    add_launch(launch, finding.evidence);
    auto told = nlohmann::ordered_json::array();
    for (const Exceeded& one : exceeded) {
        told.push_back(one.what);
        finding.fixes.push_back({one.fix, one.command, false});
    }
    finding.evidence["exceeded"] = std::move(told);
    if (exceeded.empty()) {
        finding.confidence = call->log.empty() ? Confidence::likely : finding.confidence;
        finding.limits += (finding.limits.empty() ? "" : "; ") +
                          say("the arguments of the kernel and its cluster are not seen");
    }
    return finding;
}

}  // namespace cudiag
