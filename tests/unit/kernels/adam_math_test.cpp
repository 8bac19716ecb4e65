// The kernel's arithmetic on the CPU, held against the definition of AdamW in double precision,
// which tests/scenario/bench/our_adamw_is_torchs holds against torch.
#include "kernels/adam_math.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
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

// The nearest number with so many binary digits, of which the last is worth 2^lowest at least.
float rounded_to(float value, int digits, int lowest) {
    int exponent = 0;
    (void)std::frexp(value, &exponent);
    const int last = std::max(exponent - digits, lowest);
    return std::ldexp(std::nearbyint(std::ldexp(value, -last)), last);
}

float from_bfloat16(float value) {
    return rounded_to(value, 8, -133);
}

float from_float16(float value) {
    return rounded_to(value, 11, -24);
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

// Ways to compute the same that round elsewhere than torch's kernel does.
enum class Slip {
    none,
    share_of_distance,  // averages move towards the gradient, as of old
    fused_square,       // the gradient's square is not rounded
    rounded_l2,         // the product of L2 is
    one_factor_of_decay,
    late_step_size,
    reciprocal_of_bias,
    reciprocal_of_denominator,
    narrow_gradient,  // rounded to 16 bits when it was unscaled
};

// adam_update of a gradient scaled by `kScale`, with a slip.
constexpr float kScale = 3;

void slipping_update(Slip slip, float& parameter, float scaled, float& average, float& square,
                     const AdamCoefficients& with) {
    const auto rounded = [](float value) { return from_bfloat16(value); };
    float gradient = scaled / kScale;
    gradient = slip == Slip::narrow_gradient ? rounded(gradient) : gradient;
    if (with.l2 != 0) {
        const double product = static_cast<double>(with.l2) * parameter;  // exact
        gradient = slip == Slip::rounded_l2 ? static_cast<float>(product) + gradient
                                            : std::fma(with.l2, parameter, gradient);
    }
    if (with.decay != 0) {
        parameter = slip == Slip::one_factor_of_decay ? (1 - with.decay) * parameter
                                                      : std::fma(-with.decay, parameter, parameter);
    }
    const auto squared = static_cast<float>(static_cast<double>(gradient) * gradient);
    average = slip == Slip::share_of_distance
                  ? std::fma(1 - with.beta1, gradient - average, average)
                  : std::fma(with.beta1, average, std::fma(-with.beta1, gradient, gradient));
    square = slip == Slip::fused_square
                 ? std::fma(1 - with.beta2, std::fma(gradient, gradient, -square), square)
                 : std::fma(with.beta2, square, std::fma(-with.beta2, squared, squared));
    const float root = std::sqrt(square);
    const float corrected =
        slip == Slip::reciprocal_of_bias ? root * (1 / with.bias2_sqrt) : root / with.bias2_sqrt;
    const float denominator = corrected + with.epsilon;
    if (slip == Slip::reciprocal_of_denominator) {
        parameter -= with.step_size * average * (1 / denominator);
    } else if (slip == Slip::late_step_size) {
        parameter -= with.step_size * (average / denominator);
    } else {
        parameter -= with.step_size * average / denominator;
    }
}

// Which share of the parameters differs from adam_update's after 100 steps, if what is kept
// between steps is rounded by `keep`.
template <typename Keep>
double share_that_differs(Slip slip, std::uint32_t decoupled, Keep keep) {
    AdamPreparation given = usual();
    given.float_math = 1;
    given.decoupled = decoupled;
    std::mt19937 random{1};
    std::normal_distribution<float> normal;
    std::array<std::vector<float>, 2> parameters;
    std::array<std::vector<float>, 2> averages;
    std::array<std::vector<float>, 2> squares;
    for (std::size_t i = 0; i < kElements; ++i) {
        parameters[0].push_back(keep(0.05F * normal(random)));
    }
    parameters[1] = parameters[0];
    averages.fill(std::vector<float>(kElements));
    squares.fill(std::vector<float>(kElements));
    for (int step = 1; step <= kSteps; ++step) {
        const AdamCoefficients with = adam_coefficients(given, static_cast<float>(step));
        for (std::size_t i = 0; i < kElements; ++i) {
            const float scaled = keep(0.02F * static_cast<float>(1 + step % 7) * normal(random));
            adam_update(parameters[0][i], scaled / kScale, averages[0][i], squares[0][i], nullptr,
                        with);
            slipping_update(slip, parameters[1][i], scaled, averages[1][i], squares[1][i], with);
            for (auto* kept : {&parameters, &averages, &squares}) {
                (*kept)[0][i] = keep((*kept)[0][i]);
                (*kept)[1][i] = keep((*kept)[1][i]);
            }
        }
    }
    int differ = 0;
    for (std::size_t i = 0; i < kElements; ++i) {
        differ += parameters[0][i] == parameters[1][i] ? 0 : 1;
    }
    return static_cast<double>(differ) / kElements;
}

float as_it_is(float value) {
    return value;
}

// Why tests/gpu/adam.py asks for torch's bits: no slip stays unseen. A measure of 1e-6 would not
// have seen the first in float32, which was in an earlier kernel: it is 4e-7 after 100 steps.
TEST(AdamMath, RoundsWhereTorchDoesAndNowhereElse) {
    for (const std::uint32_t decoupled : {0U, 1U}) {
        EXPECT_EQ(share_that_differs(Slip::none, decoupled, as_it_is), 0);
        EXPECT_EQ(share_that_differs(Slip::none, decoupled, from_bfloat16), 0);
        EXPECT_EQ(share_that_differs(Slip::none, decoupled, from_float16), 0);
    }
    for (const Slip slip : {Slip::share_of_distance, Slip::fused_square, Slip::one_factor_of_decay,
                            Slip::late_step_size, Slip::reciprocal_of_bias,
                            Slip::reciprocal_of_denominator, Slip::narrow_gradient}) {
        EXPECT_GT(share_that_differs(slip, 1, as_it_is), 0.01) << static_cast<int>(slip);
    }
    EXPECT_GT(share_that_differs(Slip::rounded_l2, 0, as_it_is), 0.001);
}

// A difference in the last place of a float moves what lies on a tie of 16 bits: on an H200 up to
// 0.6 % of the parameters were off while averages moved by a share of the distance.
TEST(AdamMath, ShowsInSixteenBitsHowAveragesMove) {
    for (const auto keep : {from_bfloat16, from_float16}) {
        const double share = share_that_differs(Slip::share_of_distance, 1, keep);
        EXPECT_GT(share, 0.001);
        EXPECT_LT(share, 0.01);
    }
}

}  // namespace
}  // namespace cudiag
