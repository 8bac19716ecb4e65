// The kernel's arithmetic on the CPU, held against the definition of AdamW in double precision,
// which tests/scenario/bench/our_adamw_is_torchs holds against torch.
#include "kernels/adam_math.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include "tests/unit/kernels/adam_model.h"

namespace cudiag {
namespace {

AdamPreparation usual() {
    AdamPreparation with{};
    with.lr = 1e-3;
    with.beta1 = 0.9;
    with.beta2 = 0.999;
    with.epsilon = 1e-8;
    with.weight_decay = 0.01;
    with.decoupled = 1;
    return with;
}

constexpr int kElements = 5000;
constexpr int kSteps = 100;

// The largest difference, relative to the element or to the root mean square of all, whichever is
// larger: as tests/gpu/adam.py measures it.
template <typename Model, typename Real>
double furthest(const std::vector<float>& ours, const std::vector<Model>& models,
                Real Model::*theirs) {
    double sum = 0;
    for (const Model& model : models) {
        const double right = model.*theirs;
        sum += right * right;
    }
    const double mean = std::sqrt(sum / kElements);
    double most = 0;
    for (std::size_t i = 0; i < ours.size(); ++i) {
        const double right = models[i].*theirs;
        most = std::max(most, std::abs(ours[i] - right) / std::max(std::abs(right), mean));
    }
    return most;
}

template <typename Model>
void expect_equal(const AdamPreparation& with, bool amsgrad, double to) {
    std::mt19937 random{1};
    std::normal_distribution<float> normal;
    std::vector<Model> models(kElements);
    std::vector<float> parameters(kElements);
    std::vector<float> averages(kElements);
    std::vector<float> squares(kElements);
    std::vector<float> most(kElements);
    for (std::size_t i = 0; i < kElements; ++i) {
        parameters[i] = 0.05F * normal(random);
        models[i].parameter = parameters[i];
    }
    for (int step = 1; step <= kSteps; ++step) {
        const AdamCoefficients coefficients = adam_coefficients(with, static_cast<float>(step));
        for (std::size_t i = 0; i < kElements; ++i) {
            const float gradient = 0.02F * static_cast<float>(1 + step % 7) * normal(random);
            adam_update(parameters[i], gradient, averages[i], squares[i],
                        amsgrad ? &most[i] : nullptr, coefficients);
            models[i].step(gradient, with, amsgrad, static_cast<float>(step));
        }
    }
    EXPECT_LT(furthest(parameters, models, &Model::parameter), to);
    EXPECT_LT(furthest(averages, models, &Model::average), to);
    EXPECT_LT(furthest(squares, models, &Model::square), to);
    if (amsgrad) {
        EXPECT_LT(furthest(most, models, &Model::most_square), to);
    }
}

// Rounding float parameters 100 times alone takes torch's fused 2e-6 away from exact arithmetic.
constexpr double kOfFloats = 3e-6;
constexpr double kEqual = 1e-6;
constexpr double kSameBits = 1e-300;

void expect_torchs(AdamPreparation with, bool amsgrad = false) {
    with.float_math = 0;
    expect_equal<TorchsFused<double>>(with, amsgrad, kEqual);
    expect_equal<AdamModel>(with, amsgrad, kOfFloats);
    with.float_math = 1;
    expect_equal<TorchsFused<float>>(with, amsgrad, kSameBits);
    expect_equal<AdamModel>(with, amsgrad, kOfFloats);
}

TEST(AdamMath, IsTorchsAdamW) {
    expect_torchs(usual());
}

TEST(AdamMath, IsTorchsAdamWithL2) {
    AdamPreparation with = usual();
    with.decoupled = 0;
    expect_torchs(with);
}

TEST(AdamMath, IsTorchsAmsgrad) {
    expect_torchs(usual(), true);
}

TEST(AdamMath, MaximizesAsTorchDoes) {
    AdamPreparation with = usual();
    with.maximized = 1;
    expect_torchs(with);
}

TEST(AdamMath, DoesWithoutDecay) {
    AdamPreparation with = usual();
    with.weight_decay = 0;
    expect_torchs(with);
}

TEST(AdamMath, KeepsAnInfiniteParameterOutOfTheAverages) {
    for (const std::uint32_t decoupled : {0U, 1U}) {
        AdamPreparation with = usual();
        with.weight_decay = 0;
        with.decoupled = decoupled;
        float parameter = std::numeric_limits<float>::infinity();
        float average = 0;
        float square = 0;
        adam_update(parameter, 1, average, square, nullptr, adam_coefficients(with, 1));
        EXPECT_TRUE(std::isinf(parameter));
        EXPECT_NEAR(average, 0.1F, 1e-7F);
        EXPECT_NEAR(square, 0.001F, 1e-9F);
    }
}

TEST(AdamMath, TakesTheFirstStepOfTheSizeOfTheRate) {
    AdamPreparation with = usual();
    with.weight_decay = 0;
    float parameter = 1;
    float average = 0;
    float square = 0;
    adam_update(parameter, 123, average, square, nullptr, adam_coefficients(with, 1));
    EXPECT_NEAR(parameter, 1 - 1e-3, 1e-7);
}

}  // namespace
}  // namespace cudiag
