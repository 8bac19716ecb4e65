// Which failures are a CUDA that could not start, and by what words it is known.
#include "diagnose/cuda/told.h"
#include "tests/unit/diagnose/cuda/facts.h"

namespace cudiag {
namespace {

using testing::failed_call;
using testing::python_with_driver;
using testing::raised;

constexpr const char* kLibrary = "/drv/libcuda.so.580.65.06";

TEST(CudaCase, IsReadFromTheExceptionThatEndedTheProgram) {
    Process process = python_with_driver(kLibrary, 13000);
    process.exceptions = {
        raised("Unexpected error from cudaGetDeviceCount(). Did you run some "
               "cuda functions before calling NumCudaDevices() that might have "
               "already set an error? Error 802: system not yet initialized")};
    const Machine machine;
    const auto c = cuda_case_of(process, machine);
    ASSERT_TRUE(c);
    EXPECT_EQ(c->code, 802);
    EXPECT_EQ(c->driver_release, "580.65.06");
    EXPECT_EQ(c->driver_cuda(), "13.0");
    EXPECT_TRUE(c->inferred.empty());
}

TEST(CudaCase, TakesTheDriversOwnCallForTheOneThatGaveTheCode) {
    Process process = python_with_driver(kLibrary, 13000);
    process.exceptions = {raised("CUDA error: initialization error")};
    EXPECT_FALSE(cuda_case_of(process, Machine{})) << "3 of another call has other causes";
    process.cuda_failures = {failed_call("cuInit", 3)};
    const Machine machine;
    const auto c = cuda_case_of(process, machine);
    ASSERT_TRUE(c);
    EXPECT_EQ(c->call, "cuInit");
}

TEST(CudaCase, IsNoneOfAProgramThatEndedWell) {
    Process process = python_with_driver(kLibrary, 13000);
    process.end_status = 0;
    process.cuda_failures = {failed_call("cuInit", 100)};
    EXPECT_FALSE(cuda_case_of(process, Machine{}));
}

TEST(CudaCase, IsNoneOfAProbeBeforeAnotherException) {
    Process process = python_with_driver(kLibrary, 13000);
    process.cuda_failures = {failed_call("cuInit", 100)};
    process.exceptions = {raised("'name'", "KeyError")};
    EXPECT_FALSE(cuda_case_of(process, Machine{}));
}

TEST(CudaCase, IsNoneOfAScriptThatChoseItsStatus) {
    Process process = python_with_driver(kLibrary, 13000);
    process.cuda_failures = {failed_call("cuInit", 100)};
    EXPECT_FALSE(cuda_case_of(process, Machine{}));
}

TEST(CudaCase, IsNoneOfAnErrorThatCameLater) {
    Process process = python_with_driver(kLibrary, 13000);
    process.exceptions = {raised("CUDA error: an illegal memory access was encountered")};
    EXPECT_FALSE(cuda_case_of(process, Machine{}));
    process.exceptions = {raised("CUDA error: out of memory")};
    EXPECT_FALSE(cuda_case_of(process, Machine{}));
}

TEST(CudaCase, OfAProgramWithoutWordsIsItsLastCallOfTheDriver) {
    Process process = python_with_driver(kLibrary, 13000);
    process.exe = "/opt/solver";
    process.argv = {process.exe};
    process.cuda_failures = {failed_call("cuInit", 802)};
    const Machine machine;
    const auto c = cuda_case_of(process, machine);
    ASSERT_TRUE(c);
    EXPECT_EQ(c->code, 802);
    EXPECT_FALSE(c->inferred.empty());

    process.end_time_ns += 60'000'000'000;
    EXPECT_FALSE(cuda_case_of(process, machine)) << "it went on for a minute";
}

// NCCL looks for kernels that it may not have as it starts: seen on an H200, 209 and all was well.
TEST(CudaCase, OfAKilledProcessIsNoCallAfterWhichItWentOn) {
    Process process = python_with_driver(kLibrary, 13000);
    process.exceptions.clear();
    process.end = EndHow::none;
    process.end_time_ns = 0;
    process.cuda_failures = {failed_call("cuLibraryGetKernel", 209)};
    process.cuda_failures.front().time_ns = 5'000;
    const auto is_told = [&] { return told_of(process).has_value(); };
    EXPECT_TRUE(is_told());
    CudaLaunch launch;
    launch.time_ns = 4'000;
    process.launches = {launch};
    EXPECT_TRUE(is_told());
    process.launches.front().time_ns = 6'000;
    EXPECT_FALSE(is_told());
    process.launches.clear();
    NcclCall made;
    made.time_ns = 6'000;
    process.nccl_calls = {made};
    EXPECT_FALSE(is_told());
    process.nccl_calls.front().result = 2;
    EXPECT_TRUE(is_told()) << "a call that failed is no sign of going on";
}

TEST(CudaCase, OfAnExceptionThatCameFromThisOneIsInferred) {
    Process process = python_with_driver(kLibrary, 13000);
    process.exceptions = {raised("the model cannot be loaded"),
                          raised("No CUDA GPUs are available")};
    const Machine machine;
    const auto c = cuda_case_of(process, machine);
    ASSERT_TRUE(c);
    EXPECT_FALSE(c->inferred.empty());
}

TEST(CudaCase, OfAnExceptionThatNamesTheCallIsThatCall) {
    Process process = python_with_driver(kLibrary, 13000);
    process.cuda_failures = {failed_call("cuInit", 803)};
    process.exceptions = {raised("cuInit did not work")};
    const Machine machine;
    const auto c = cuda_case_of(process, machine);
    ASSERT_TRUE(c);
    EXPECT_EQ(c->code, 803);
}

}  // namespace
}  // namespace cudiag
