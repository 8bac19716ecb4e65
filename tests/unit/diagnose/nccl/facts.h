// Ranks that NCCL let down, made by hand for the rules about NCCL.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "diagnose/judge.h"
#include "diagnose/nccl/rules.h"

namespace cudiag::testing {

constexpr std::uint64_t kEnd = 2'000'000'000'000;

// As torch words it: NCCLUtils.cpp of torch 2.13.0.
inline std::string torch_words(const std::string& words, const std::string& detail,
                               const std::string& last_error,
                               const std::string& version = "2.29.7") {
    return "NCCL error in: /pytorch/torch/csrc/distributed/c10d/NCCLUtils.cpp:93, " + words +
           ", NCCL version " + version + "\n" + detail + "\nLast error:\n" + last_error;
}

inline std::string system_error(const std::string& last_error,
                                const std::string& version = "2.29.7") {
    return torch_words("unhandled system error (run with NCCL_DEBUG=INFO for details)",
                       "ncclSystemError: System call (e.g. socket, malloc) or external library "
                       "call failed or device error. ",
                       last_error, version);
}

inline std::string cuda_error(const std::string& last_error,
                              const std::string& version = "2.29.7") {
    return torch_words("unhandled cuda error (run with NCCL_DEBUG=INFO for details)",
                       "ncclUnhandledCudaError: Call to CUDA function failed.", last_error,
                       version);
}

inline std::string invalid_usage(const std::string& last_error) {
    return torch_words("invalid usage (run with NCCL_DEBUG=WARN for details)",
                       "ncclInvalidUsage: This usually reflects invalid usage of NCCL library.",
                       last_error);
}

inline std::string remote_error(const std::string& last_error) {
    return torch_words("remote process exited or there was a network error",
                       "ncclRemoteError: A call failed possibly due to a network error or a remote "
                       "process exiting prematurely.",
                       last_error);
}

// A Python that ended of an exception with these words.
inline Process failed_of(const std::string& message, std::int32_t pid = 9) {
    Process process;
    process.pid = pid;
    process.root_pid = 9;
    process.exe = "/opt/venv/bin/python3.11";
    process.argv = {process.exe, "train.py"};
    process.end = EndHow::exit;
    process.end_status = 1;
    process.end_time_ns = kEnd;
    PythonException exception;
    exception.type = "torch.distributed.DistBackendError";
    exception.message = message;
    exception.time_ns = kEnd - 1'000'000;
    exception.python = {{"train.py", 3, "main"}};
    process.exceptions = {exception};
    return process;
}

inline Process rank_failed_of(const std::string& message, int rank, int ranks) {
    Process process = failed_of(message, 10 + rank);
    process.environment["RANK"] = process.environment["LOCAL_RANK"] = std::to_string(rank);
    process.environment["WORLD_SIZE"] = process.environment["LOCAL_WORLD_SIZE"] =
        std::to_string(ranks);
    return process;
}

// What is said of the first process.
inline std::optional<Finding> said_of(const std::vector<Process>& processes,
                                      const Machine& machine = {}) {
    Facts facts;
    facts.processes = processes;
    const auto c = nccl_case_of(facts, facts.processes.front(), machine);
    return c ? nccl_failed(*c) : std::nullopt;
}

inline std::optional<Finding> said_of(const std::string& message, const Machine& machine = {}) {
    return said_of(std::vector<Process>{failed_of(message)}, machine);
}

inline bool advises(const Finding& finding, const std::string& words) {
    return std::any_of(finding.fixes.begin(), finding.fixes.end(), [&](const Fix& fix) {
        return (fix.text + "\n" + fix.command).find(words) != std::string::npos;
    });
}

inline bool holds(const std::string& text, const std::string& words) {
    return text.find(words) != std::string::npos;
}

}  // namespace cudiag::testing
