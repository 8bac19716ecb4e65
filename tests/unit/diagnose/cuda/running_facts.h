// Processes whose GPU ran and gave an error, made by hand.
#pragma once

#include "diagnose/cuda/running_rules.h"
#include "tests/unit/diagnose/cuda/facts.h"

namespace cudiag::testing {

// A Python with torch on a driver of CUDA 13.0 that ended with status 1.
inline Process trainer() {
    return python_with_driver("/drv/libcuda.so.580.65.06", 13000);
}

// A program without words.
inline Process solver() {
    Process process = trainer();
    process.exe = "/opt/solver";
    process.argv = {process.exe};
    return process;
}

// As an H200 answers.
inline CudaDevice h200() {
    return {.ordinal = 0,
            .name = "NVIDIA H200",
            .limits = {{1, 1024},
                       {2, 1024},
                       {3, 1024},
                       {4, 64},
                       {5, 2147483647},
                       {6, 65535},
                       {7, 65535},
                       {8, 49152},
                       {12, 65536},
                       {16, 132},
                       {75, 9},
                       {76, 0},
                       {97, 232448}}};
}

inline FailedCudaCall refused(std::uint64_t error, const LaunchShape& shape) {
    FailedCudaCall call = failed_call("cuLaunchKernel", error);
    call.handle = 0x5000;
    call.kernel = "_Z4axpyPfi";
    call.shape = shape;
    call.device = h200();
    call.function_limits = {{0, 1024}, {1, 0}, {3, 0}, {4, 24}, {8, 49152}};
    return call;
}

// A launch some microseconds before the error of failed_call(), on a stream.
inline CudaLaunch launched(const std::string& kernel, std::uint64_t us_before,
                           std::uint64_t stream = kLegacyStream) {
    CudaLaunch launch;
    launch.time_ns = kEnd - 2'000'000 - us_before * 1000;
    launch.ticks = launch.time_ns / 2;
    launch.tid = 8;
    launch.handle = std::hash<std::string>{}(kernel);
    launch.kernel = kernel;
    launch.stream = stream;
    launch.shape = {.grid = {4, 1, 1}, .block = {256, 1, 1}};
    return launch;
}

// A call that reports an illegal memory access of some kernel before it.
inline FailedCudaCall reported(std::uint64_t error = 700) {
    return failed_call("cuStreamSynchronize", error);
}

// What the rules say of a process, which must be judged to have an error of a GPU that ran.
inline std::optional<Finding> said_by(std::optional<Finding> (*rule)(const RunningCase&),
                                      const Process& process) {
    const auto c = running_case_of(process);
    return c ? rule(*c) : std::nullopt;
}

inline bool has(const std::string& text, const std::string& words) {
    return text.find(words) != std::string::npos;
}

}  // namespace cudiag::testing
