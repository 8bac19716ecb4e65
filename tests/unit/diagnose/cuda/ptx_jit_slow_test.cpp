#include <gtest/gtest.h>

#include "tests/unit/diagnose/cuda/code_facts.h"

namespace cudiag {
namespace {

using testing::fatbin;
using testing::ptx;
using testing::sass;

constexpr std::uint64_t kSecond = 1'000'000'000;

class PtxJitSlow : public ::testing::Test {
  protected:
    // A call that loaded a file of such code.
    SlowCode loading(const std::string& images, std::uint64_t duration_ns) {
        world_.text("code.fatbin", fatbin(images));
        SlowCode slow;
        slow.call = "cuModuleLoad";
        slow.duration_ns = duration_ns;
        slow.file = world_.path("code.fatbin");
        slow.device = testing::h200();
        return slow;
    }

    static std::optional<Finding> said_of(const std::vector<SlowCode>& calls,
                                          const std::map<std::string, std::string>& set = {}) {
        Process process;
        process.pid = 7;
        process.slow_code = calls;
        process.environment = set;
        return cuda_ptx_jit_slow(process);
    }

    ElfWorld world_;
};

TEST_F(PtxJitSlow, NamesTheFileItsCodeAndTheTime) {
    const auto finding = said_of({loading(sass(80) + ptx(80, 8, 4), 7 * kSecond)});
    ASSERT_TRUE(finding);
    EXPECT_EQ(finding->severity, Severity::warning);
    EXPECT_EQ(finding->confidence, Confidence::certain);
    EXPECT_EQ(finding->title,
              "the driver compiled PTX for 7.0 s: code.fatbin has no code for sm_90, only sm_80 "
              "(SASS), compute_80 (PTX)");
    EXPECT_EQ(finding->evidence["seconds"], 7.0);
    EXPECT_EQ(finding->evidence["modules"][0]["calls"][0], "cuModuleLoad");
    EXPECT_EQ(finding->evidence["compute_capability"], "9.0");
    ASSERT_FALSE(finding->fixes.empty());
    EXPECT_NE(finding->fixes.back().text.find("sm_90"), std::string::npos);
}

TEST_F(PtxJitSlow, IsSilentOfCodeThatOnlyHadToBeReadAndOfWhatIsNotKnown) {
    EXPECT_FALSE(said_of({loading(sass(90) + ptx(80, 8, 4), 7 * kSecond)}));
    EXPECT_FALSE(said_of({loading(sass(80), 7 * kSecond)})) << "it cannot have run at all";
    SlowCode unknown = loading(ptx(80, 8, 4), 7 * kSecond);
    unknown.device.reset();
    EXPECT_FALSE(said_of({unknown}));
    unknown = loading(ptx(80, 8, 4), 7 * kSecond);
    unknown.file = world_.path("gone.fatbin");
    EXPECT_FALSE(said_of({unknown}));
    unknown.file.clear();
    EXPECT_FALSE(said_of({unknown})) << "a launch of a kernel whose code was not seen";
}

TEST_F(PtxJitSlow, AddsWhatIsShortAndIsSilentOfLittle) {
    const SlowCode short_one = loading(ptx(80, 8, 4), kSecond / 4);
    EXPECT_FALSE(said_of({short_one, short_one, short_one}));
    SlowCode launch = short_one;
    launch.call = "cuLaunchKernel";
    launch.kernel = "_Z4goodPfi";
    const auto finding = said_of({short_one, short_one, launch, launch});
    ASSERT_TRUE(finding);
    EXPECT_EQ(finding->evidence["modules"].size(), 1U);
    EXPECT_EQ(finding->evidence["modules"][0]["calls"].size(), 2U);
    EXPECT_EQ(finding->evidence["modules"][0]["kernels"][0], "good");
}

TEST_F(PtxJitSlow, ReadsWhatWasHandedOverInMemory) {
    SlowCode slow = loading(ptx(80, 8, 4), 2 * kSecond);
    slow.call = "cuModuleLoadData";
    slow.file.clear();
    slow.code_kind = "PTX";
    const auto finding = said_of({slow});
    ASSERT_TRUE(finding);
    EXPECT_NE(finding->title.find("made while the program ran"), std::string::npos);
    slow.code_kind = "cubin";
    EXPECT_FALSE(said_of({slow}));
}

TEST_F(PtxJitSlow, TellsHowTheCacheStandsAndProposesWhatMendsIt) {
    const std::vector<SlowCode> calls{loading(ptx(80, 8, 4), 2 * kSecond)};
    const auto command = [](const std::optional<Finding>& finding) {
        return finding && !finding->fixes.empty() ? finding->fixes.front().command : "none";
    };
    EXPECT_EQ(command(said_of(calls, {{"CUDA_CACHE_DISABLE", "1"}})), "unset CUDA_CACHE_DISABLE");
    EXPECT_EQ(command(said_of(calls, {{"CUDA_CACHE_PATH", world_.path("code.fatbin/cache")}})),
              "export CUDA_CACHE_PATH=$HOME/.nv/ComputeCache");
    world_.text("cache/code", std::string(95, 'x'));
    const auto full =
        said_of(calls, {{"CUDA_CACHE_PATH", world_.path("cache")}, {"CUDA_CACHE_MAXSIZE", "100"}});
    EXPECT_EQ(command(full), "export CUDA_CACHE_MAXSIZE=4294967296");
    EXPECT_NE(full->evidence["cache"].get<std::string>().find("95 bytes"), std::string::npos)
        << full->evidence["cache"];
    const auto well = said_of(calls, {{"CUDA_CACHE_PATH", world_.path("cache")}});
    EXPECT_EQ(command(well), "") << "only a build for this GPU is proposed";
    EXPECT_EQ(well->fixes.size(), 1U);
    EXPECT_EQ(command(said_of(calls, {{"CUDA_FORCE_PTX_JIT", "1"}})), "unset CUDA_FORCE_PTX_JIT");
}

}  // namespace
}  // namespace cudiag
