// Processes that CUDA let down, made by hand for the rules of CUDA's start.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "diagnose/cuda/rules.h"

namespace cudiag::testing {

constexpr std::uint64_t kEnd = 2'000'000'000'000;

// A Python that ended with status 1. The driver is a fact: no library of this machine is looked
// for.
inline Process python_with_driver(const std::string& path, std::uint64_t version) {
    Process process;
    process.pid = process.root_pid = 7;
    process.exe = "/opt/venv/bin/python3.11";
    process.argv = {process.exe, "train.py"};
    process.end = EndHow::exit;
    process.end_status = 1;
    process.end_time_ns = kEnd;
    process.cuda_driver = CudaDriver{.path = path, .version = version};
    return process;
}

inline PythonException raised(const std::string& message,
                              const std::string& type = "RuntimeError") {
    PythonException exception;
    exception.type = type;
    exception.message = message;
    exception.time_ns = kEnd - 1'000'000;
    exception.python = {{"train.py", 3, "main"}};
    return exception;
}

inline FailedCudaCall failed_call(const std::string& name, std::uint64_t error) {
    FailedCudaCall call;
    call.name = name;
    call.error = error;
    call.time_ns = kEnd - 2'000'000;
    call.tid = 8;
    return call;
}

inline void map_library(Process& process, const std::string& path) {
    Module module;
    module.path = path;
    process.snapshots[1].push_back(module);
}

inline bool advises(const Finding& finding, const std::string& words) {
    return std::any_of(finding.fixes.begin(), finding.fixes.end(), [&](const Fix& fix) {
        return (fix.text + "\n" + fix.command).find(words) != std::string::npos;
    });
}

inline Machine with_nodes(const std::vector<std::string>& nodes) {
    Machine machine;
    machine.device_nodes = nodes;
    return machine;
}

}  // namespace cudiag::testing
