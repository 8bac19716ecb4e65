#include "tests/unit/diagnose/build/facts.h"
#include "tests/unit/diagnose/loader/elf_world.h"

namespace cudiag {
namespace {

using testing::facts_with;
using testing::ran;

BuildStep compiler(std::int32_t pid, const std::string& tool, std::uint64_t begin,
                   std::uint64_t end) {
    BuildStep step = ran(pid, 10, tool, begin, end);
    step.peak_bytes = 1;
    return step;
}

TEST(BuildSlow, TellsHowLongABuildTookAndWhichStepsDid) {
    const Facts facts =
        facts_with({ran(10, 0, "ninja", 0, 61'000), compiler(20, "cicc", 1'000, 21'000),
                    compiler(21, "cc1plus", 1'000, 41'000), compiler(22, "sh", 0, 60'000),
                    ran(30, 0, "make", 0, 5'000)});
    const auto finding = build_slow(facts);
    ASSERT_TRUE(finding);
    EXPECT_EQ(finding->slug, "build-slow");
    EXPECT_EQ(finding->severity, Severity::note);
    EXPECT_EQ(finding->title, "the build by ninja took 61 s, compiled anew");
    EXPECT_EQ(finding->evidence["seconds"], 61.0);
    EXPECT_EQ(finding->evidence["steps"],
              (nlohmann::ordered_json{{{"tool", "cc1plus"}, {"seconds", 40.0}},
                                      {{"tool", "cicc"}, {"seconds", 20.0}}}));
}

TEST(BuildSlow, NamesTheFiveLongestAtMost) {
    Facts facts = facts_with({ran(10, 0, "ninja", 0, 61'000)});
    for (std::int32_t i = 0; i < 8; ++i) {
        const auto length = static_cast<std::uint64_t>(i + 1) * 1'000;
        facts.build.steps.push_back(compiler(20 + i, "cc1plus", 1'000, 1'000 + length));
    }
    const auto finding = build_slow(facts);
    ASSERT_TRUE(finding);
    ASSERT_EQ(finding->evidence["steps"].size(), 5U);
    EXPECT_EQ(finding->evidence["steps"][0]["seconds"], 8.0);
}

TEST(BuildSlow, ProposesToBuildDeepSpeedAheadWhereItIsDeepSpeeds) {
    Facts facts = facts_with(
        {ran(10, 0, "ninja", 0, 61'000), ran(20, 10, "c++ -c /src/a.cpp", 1'000, 2'000)});
    EXPECT_FALSE(testing::proposes(build_slow(facts).value(), "deepspeed"));
    const ElfWorld world;
    const std::string site = world.path() + "/site-packages";
    facts.build.steps[1].argv.back() = site + "/deepspeed/ops/csrc/adam/fused_adam_frontend.cpp";
    EXPECT_FALSE(testing::proposes(build_slow(facts).value(), "pip install"))
        << "which release is installed is not known";
    world.text("site-packages/deepspeed-0.19.8.dist-info/METADATA",
               "Metadata-Version: 2.1\nName: deepspeed\nVersion: 0.19.8\n");
    EXPECT_TRUE(testing::proposes(build_slow(facts).value(), "DS_BUILD_FUSED_ADAM=1"));
    EXPECT_TRUE(testing::proposes(build_slow(facts).value(), "'deepspeed==0.19.8'"));
}

TEST(BuildSlow, IsSilentOfAQuickBuildAndOfNone) {
    EXPECT_FALSE(build_slow(facts_with({ran(10, 0, "ninja", 0, 29'000)})));
    EXPECT_FALSE(build_slow(facts_with({testing::running(10, 0, "ninja", 0)})));
    EXPECT_FALSE(build_slow(Facts{}));
}

TEST(BuildWrongAccelerator, KnowsTheSourcesOfDeepSpeedsCpuAdam) {
    const std::string source = "/site/deepspeed/ops/csrc/cpu/adam/fused_adam.cpp";
    BuildStep ninja = ran(10, 0, "ninja", 0, 900);
    ninja.environment = {{"DS_ACCELERATOR", "cpu"}};
    Facts facts = facts_with({ninja, ran(20, 10, "c++ -c " + source, 100, 800)});
    const auto finding = build_wrong_accelerator(facts);
    ASSERT_TRUE(finding);
    EXPECT_EQ(finding->slug, "build-wrong-accelerator");
    EXPECT_EQ(finding->severity, Severity::warning);
    EXPECT_EQ(finding->evidence["accelerator"], "cpu");
    EXPECT_EQ(finding->evidence["why"], "DS_ACCELERATOR=cpu");
    EXPECT_EQ(finding->evidence["sources"], source);
    EXPECT_TRUE(testing::proposes(*finding, "export DS_ACCELERATOR=cuda"));
    facts.build.steps[0].environment.clear();
    EXPECT_EQ(build_wrong_accelerator(facts)->evidence["why"],
              "DS_ACCELERATOR is not set, and DeepSpeed saw no GPU");
}

TEST(BuildWrongAccelerator, IsSilentOfTheSourcesForTheGpu) {
    EXPECT_FALSE(build_wrong_accelerator(facts_with(
        {ran(20, 10, "c++ -c /site/deepspeed/ops/csrc/adam/fused_adam_frontend.cpp", 100, 800),
         ran(21, 10, "nvcc -c /site/deepspeed/ops/csrc/adam/multi_tensor_adam.cu", 100, 800)})));
}

}  // namespace
}  // namespace cudiag
