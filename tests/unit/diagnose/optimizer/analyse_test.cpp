#include "diagnose/optimizer/analyse.h"

#include <gtest/gtest.h>

#include "diagnose/optimizer/busy.h"
#include "tests/unit/diagnose/optimizer/made_profile.h"

namespace cudiag {
namespace {

Profile analysed(const MadeTraining& of = {}) {
    return analyse(made(of), {});
}

const Optimizer& only(const Profile& profile) {
    return profile.optimizers.at(0);
}

TEST(Analysis, GivesEachStepItsOwnOperations) {
    const Profile profile = analysed();
    ASSERT_EQ(profile.steps.size(), 60U);
    for (std::size_t i = 0; i < 50; ++i) {
        const OptimizerStep& step = profile.steps[i];
        EXPECT_TRUE(step.profiled);
        EXPECT_EQ(step.kernels, 4U);
        EXPECT_EQ(step.launches, 4U);
        EXPECT_EQ(step.device_busy, 4'000'000U);
        EXPECT_EQ(step.gaps, 30'000U);
    }
    EXPECT_FALSE(profile.steps[50].profiled);
    EXPECT_FALSE(profile.steps[50].launches) << "behind the window launches are not counted";
    EXPECT_TRUE(profile.completeness.matched_by_launch);
    EXPECT_TRUE(profile.completeness.complete());
}

TEST(Analysis, TellsAStepAndItsShare) {
    const Profile profile = analysed();
    const Optimizer& optimizer = only(profile);
    EXPECT_EQ(optimizer.kind, "AdamW");
    EXPECT_EQ(optimizer.implementation, Implementation::foreach);
    EXPECT_EQ(optimizer.steps, 60U);
    EXPECT_EQ(optimizer.steady_steps, 49U) << "not the first";
    EXPECT_DOUBLE_EQ(optimizer.span.median, 4'030'000);
    EXPECT_DOUBLE_EQ(optimizer.device.median, 4'000'000);
    EXPECT_DOUBLE_EQ(optimizer.period.median, 10'000'000);
    EXPECT_NEAR(*optimizer.share, 0.403, 1e-9);
    EXPECT_NEAR(*optimizer.busy_share, 0.85, 1e-9);  // 3 x 1.5 ms and 4 x 1 ms of 10
    EXPECT_DOUBLE_EQ(optimizer.kernels_a_step, 4);
    ASSERT_EQ(optimizer.by_name.size(), 1U);
    EXPECT_DOUBLE_EQ(optimizer.by_name[0].launches_a_step, 4);
    EXPECT_DOUBLE_EQ(optimizer.by_name[0].mean, 1'000'000);
    // AdamW reads and writes each element 7 times, of 4 bytes.
    EXPECT_EQ(optimizer.traffic.total(), 28'000'000'000U);
    EXPECT_NEAR(*optimizer.gb_per_s, 28e9 / 4.03e6, 1);
}

TEST(Analysis, ComparesStepsInTheWindowWithThoseBehindIt) {
    constexpr std::uint64_t kWindow = 20;  // as the shim has it (shim/profile.cpp)
    MadeTraining of;
    of.steps = 120;
    of.profiled = kWindow;
    RecordedProfile recorded = made(of);
    for (StepRecord& step : recorded.steps) {
        if (step.number < kWindow) {
            continue;
        }
        const std::uint64_t sooner = (step.number - kWindow) * 100'000;  // 1 % a step
        step.begin -= sooner;
        step.end -= sooner;
    }
    const Profile profile = analyse(recorded, {});
    ASSERT_TRUE(profile.cost.relative());
    EXPECT_NEAR(*profile.cost.relative(), 10.0 / 9.9 - 1, 1e-6);
    EXPECT_FALSE(analysed().cost.relative()) << "10 steps behind the window are too few";
    of.profiled = 10;
    EXPECT_FALSE(analyse(made(of), {}).cost.relative()) << "so are 9 within it";
}

TEST(Analysis, GoesByNamesWhereLaunchesAndRecordsDiffer) {
    RecordedProfile recorded = made();
    recorded.device.erase(recorded.device.begin() + 2);  // a forward kernel, lost
    const Profile profile = analyse(recorded, {});
    EXPECT_FALSE(profile.completeness.matched_by_launch);
    EXPECT_FALSE(profile.completeness.complete());
    EXPECT_EQ(profile.completeness.launches, profile.completeness.records + 1);
    // By launches each step behind the lost one would have got a kernel of the forward pass.
    EXPECT_EQ(profile.steps[10].kernels, 4U);
    EXPECT_EQ(profile.steps[10].device_busy, 4'000'000U);
}

TEST(Analysis, DoesNotTakeAnUnreadableCountForNone) {
    RecordedProfile recorded = made();
    recorded.windows[0].dropped = std::nullopt;
    const Profile profile = analyse(recorded, {});
    EXPECT_FALSE(profile.completeness.dropped);
    EXPECT_FALSE(profile.completeness.complete());
}

TEST(Analysis, KnowsAnImplementationByItsKernels) {
    const auto implementation = [](const char* kernel, const char* text = nullptr) {
        MadeTraining of;
        of.kernel = kernel;
        of.text = text == nullptr ? of.text : text;
        return only(analysed(of)).implementation;
    };
    EXPECT_EQ(
        implementation("void at::native::(anonymous namespace)::multi_tensor_apply_kernel<at::"
                       "native::(anonymous namespace)::FusedOptimizerTensorListMetadata<4>, "
                       "at::native::(anonymous namespace)::FusedAdamMathFunctor<float, 4>>()"),
        Implementation::fused);
    EXPECT_EQ(implementation("void multi_tensor_apply_kernel<TensorListMetadata<4>, "
                             "AdamFunctor<float, int>, float, float>(long)"),
              Implementation::apex);
    EXPECT_EQ(implementation("void multi_tensor_apply_kernel<TensorListMetadata<4>, "
                             "AdamFunctor<float, int>, float, float>(long)",
                             "class\tdeepspeed.ops.adam.fused_adam.FusedAdam\nparameters\tfloat32\t"
                             "cuda:0\t10\t1000"),
              Implementation::deepspeed);
    EXPECT_EQ(implementation("void kOptimizerStatic8bit2StateBlockwise<float, 0, 256, 1>(float*)",
                             "class\tbitsandbytes.optim.adamw.AdamW8bit"),
              Implementation::eight_bit);
    // Kernels of single operations are everybody's: known for a loop only of torch's own classes.
    const char* single = "void at::native::vectorized_elementwise_kernel<4, X>(int)";
    EXPECT_EQ(
        implementation(single, "class\ttorch.optim.adamw.AdamW\nparameters\tfloat32\tcuda:0\t2\t9"),
        Implementation::for_loop);
    EXPECT_EQ(implementation(single, "class\tmine.Lion\nparameters\tfloat32\tcuda:0\t2\t9"),
              Implementation::unknown);
}

TEST(Analysis, FindsStepsOfAProgramWithoutPython) {
    MadeTraining of;
    of.kernel = "void multi_tensor_apply_kernel<TensorListMetadata<4>, AdamFunctor<float>>(long)";
    RecordedProfile recorded = made(of);
    recorded.steps.clear();
    recorded.optimizers.clear();
    const Profile profile = analyse(recorded, {});
    ASSERT_EQ(profile.steps.size(), 50U);
    EXPECT_EQ(only(profile).kind, "optimizer kernels");
    EXPECT_EQ(only(profile).implementation, Implementation::apex);
    EXPECT_FALSE(only(profile).described);
    EXPECT_EQ(profile.steps[7].kernels, 4U);
    EXPECT_DOUBLE_EQ(only(profile).period.median, 10'000'000);

    // Kernels that come once or twice are no steps.
    recorded.device.resize(14);
    EXPECT_TRUE(analyse(recorded, {}).steps.empty());
}

TEST(Analysis, OfARunWithoutADeviceTimelineTellsTheHostsTimes) {
    RecordedProfile recorded = made();
    recorded.device.clear();
    recorded.windows.clear();
    for (StepRecord& step : recorded.steps) {
        step.profiled = 0;
    }
    recorded.lacks.push_back({.text = "CUPTI_ERROR_INSUFFICIENT_PRIVILEGES",
                              .call = "cuptiActivityEnable",
                              .error = 35,
                              .cupti = ""});
    const Profile profile = analyse(recorded, {});
    EXPECT_FALSE(profile.completeness.device_timeline);
    EXPECT_EQ(profile.completeness.why_not,
              "cuptiActivityEnable gave CUPTI_ERROR_INSUFFICIENT_PRIVILEGES");
    EXPECT_DOUBLE_EQ(only(profile).host.median, 200'000);
    EXPECT_EQ(only(profile).span.count, 0U);
    EXPECT_EQ(profile.steps[3].launches, 4U) << "the hooks still counted";
    EXPECT_FALSE(only(profile).gb_per_s);
}

TEST(Analysis, OfNothingIsNothing) {
    const Profile profile = analyse(RecordedProfile{}, {});
    EXPECT_TRUE(profile.optimizers.empty());
    EXPECT_TRUE(profile.steps.empty());
    EXPECT_FALSE(profile.completeness.device_timeline);
}

TEST(Analysis, BelievesNoNumberOfADamagedFile) {
    RecordedProfile recorded = made();
    recorded.steps[3].optimizer = 0xffffffff;
    recorded.steps[4].launches_after = ~std::uint64_t{0};
    recorded.steps[5].launches_before = 3;
    recorded.steps[6].begin = 0;
    recorded.steps[7].end = 0;
    recorded.device[9].name = 0xfffffff0;
    recorded.device[8].kind = 77;
    recorded.windows[0].launches_after = 1;
    recorded.optimizers.emplace(1'000'000, OptimizerText{"class\tx\nparameters\tfloat32"});
    EXPECT_EQ(analyse(recorded, {}).optimizers.size(), 64U);
}

TEST(BusyTimes, CountsOverlapsOnce) {
    const BusyTimes busy{{{10, 20}, {15, 30}, {40, 50}, {60, 55}}};
    EXPECT_EQ(busy.total(), 30U);
    EXPECT_EQ(busy.between(0, 100), 30U);
    EXPECT_EQ(busy.between(18, 45), 17U);
    EXPECT_EQ(busy.between(31, 39), 0U);
    EXPECT_EQ(busy.between(45, 18), 0U);
    EXPECT_EQ(BusyTimes{{}}.between(0, 9), 0U);
}

}  // namespace
}  // namespace cudiag
