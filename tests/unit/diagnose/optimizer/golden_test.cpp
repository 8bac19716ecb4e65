// Profiles that were recorded on an H200 (tests/gpu/optimizer_profile.py, 2026-12-03), beside what
// torch.profiler counted in the same runs: steps 20 to 29 of AdamW over 30 tensors of 2^20
// elements.
#include <gtest/gtest.h>
#include <unistd.h>
#include <zlib.h>

#include <filesystem>
#include <fstream>

#include "diagnose/optimizer/analyse.h"
#include "record/reader.h"

namespace cudiag {
namespace {

namespace fs = std::filesystem;

struct Case {
    const char* name;
    Implementation implementation;
    std::uint64_t kernels;
    double milliseconds;  // of these kernels, as torch.profiler has it
};

class GoldenProfile : public testing::TestWithParam<Case> {
  protected:
    GoldenProfile()
        : path_{fs::temp_directory_path() /
                ("cudiag-golden-" + std::to_string(getpid()) + ".prof")} {
        const std::string packed =
            std::string{CUDIAG_TEST_DATA "/golden/profile/"} + GetParam().name + ".prof.gz";
        std::ofstream out{path_, std::ios::binary};
        gzFile file = gzopen(packed.c_str(), "rb");
        char buffer[1 << 16];
        for (int got = 0; file != nullptr && (got = gzread(file, buffer, sizeof buffer)) > 0;) {
            out.write(buffer, got);
        }
        gzclose(file);
    }

    ~GoldenProfile() override { fs::remove(path_); }

    fs::path path_;
};

TEST_P(GoldenProfile, IsAnalysedAsTorchsProfilerCounted) {
    const ReadResult read = read_recording(path_.string());
    ASSERT_TRUE(read.recording);
    const Profile profile = analyse(recorded_profile_of(*read.recording), {});
    EXPECT_TRUE(profile.completeness.complete());
    EXPECT_TRUE(profile.completeness.shared_with_client);
    EXPECT_EQ(profile.completeness.clients, std::vector<std::string>{"libtorch_cpu.so"});
    EXPECT_TRUE(profile.completeness.matched_by_launch);
    ASSERT_EQ(profile.optimizers.size(), 1U);
    const Optimizer& optimizer = profile.optimizers.front();
    EXPECT_EQ(optimizer.implementation, GetParam().implementation);
    EXPECT_EQ(optimizer.tensors(), 30U);
    EXPECT_EQ(optimizer.elements(), 30U << 20);
    EXPECT_EQ(optimizer.steps, 60U);
    std::uint64_t kernels = 0;
    double busy = 0;
    for (const OptimizerStep& step : profile.steps) {
        if (step.number >= 20 && step.number < 30) {
            kernels += step.kernels;
            busy += static_cast<double>(step.device_busy) / 1e6;
        }
    }
    EXPECT_EQ(kernels, GetParam().kernels);
    EXPECT_NEAR(busy, GetParam().milliseconds, 0.01 * GetParam().milliseconds);
}

INSTANTIATE_TEST_SUITE_P(OnAnH200, GoldenProfile,
                         testing::Values(Case{"fused", Implementation::fused, 30, 2.491},
                                         Case{"foreach", Implementation::foreach, 160, 7.116},
                                         Case{"for-loop", Implementation::for_loop, 2400, 6.761}),
                         [](const auto& each) {
                             std::string name = each.param.name;
                             return name == "for-loop" ? "ForLoop" : name;
                         });

}  // namespace
}  // namespace cudiag
