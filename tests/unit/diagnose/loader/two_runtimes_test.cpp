#include <gtest/gtest.h>

#include "diagnose/loader/rules.h"

namespace cudiag {
namespace {

constexpr const char* kOne = "/site/nvidia/cuda_runtime/lib/libcudart.so.12";
constexpr const char* kOther = "/usr/local/cuda/lib64/libcudart.so.12";

Process with_two(const std::string& message) {
    Process process;
    process.pid = 7;
    process.exe = "/usr/bin/python3.11";
    process.end = EndHow::exit;
    process.end_status = 1;
    process.end_time_ns = 5'000'000'000;
    Module one;
    one.path = kOne;
    one.inode = 1;
    Module other;
    other.path = kOther;
    other.inode = 2;
    process.snapshots[1] = {one, other};
    PythonException exception;
    exception.type = "torch.AcceleratorError";
    exception.message = message;
    exception.python = {{"train.py", 3, "main"}};
    process.exceptions = {exception};
    return process;
}

// K27, NVIDIA/cuda-quantum#4236.
TEST(TwoRuntimes, AreAnErrorWhereOneRefusedAHandle) {
    Process process = with_two("CUDA error: invalid resource handle");
    FailedCudaCall call;
    call.name = "cuEventRecord";
    call.error = 400;
    call.caller = kOther;
    process.cuda_failures = {call};
    const auto findings = loader_two_runtimes(process);
    ASSERT_EQ(findings.size(), 1U);
    EXPECT_EQ(findings[0].severity, Severity::error);
    EXPECT_EQ(findings[0].confidence, Confidence::likely);
    EXPECT_EQ(findings[0].evidence["code"], 400);
    EXPECT_EQ(findings[0].evidence["refused_by"], kOther);
    EXPECT_NE(findings[0].title.find("invalid resource handle"), std::string::npos);
    ASSERT_EQ(findings[0].python.size(), 1U);

    process.cuda_failures.clear();
    EXPECT_EQ(loader_two_runtimes(process)[0].evidence["refused_by"], "not seen");
    RuntimeError asked;
    asked.error = 400;
    asked.library = kOne;
    process.runtime_errors = {asked};
    EXPECT_EQ(loader_two_runtimes(process)[0].evidence["refused_by"], kOne);
}

TEST(TwoRuntimes, AreAWarningWhereTheProcessFailedOfSomethingElse) {
    const auto findings = loader_two_runtimes(with_two("CUDA error: out of memory"));
    ASSERT_EQ(findings.size(), 1U);
    EXPECT_EQ(findings[0].severity, Severity::warning);
    EXPECT_FALSE(findings[0].evidence.contains("code"));
}

TEST(TwoRuntimes, OfAnotherFamilyHaveNothingToDoWithAHandleOfCuda) {
    Process process = with_two("CUDA error: invalid resource handle");
    process.snapshots[1][0].path = "/site/nvidia/nccl/lib/libnccl.so.2";
    process.snapshots[1][1].path = "/usr/lib/libnccl.so.2";
    const auto findings = loader_two_runtimes(process);
    ASSERT_EQ(findings.size(), 1U);
    EXPECT_EQ(findings[0].severity, Severity::warning);
}

}  // namespace
}  // namespace cudiag
