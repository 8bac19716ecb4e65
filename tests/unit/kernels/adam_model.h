// AdamW of one element in double precision, as torch/optim/adam.py (_single_tensor_adam,
// torch 2.13) defines it; with torch's float betas where they are asked for.
#pragma once

#include <algorithm>
#include <cmath>

#include "kernels/adam_table.h"

namespace cudiag {

struct AdamModel {
    double parameter = 0;
    double average = 0;
    double square = 0;
    double most_square = 0;

    void step(double gradient, const AdamPreparation& with, bool amsgrad, double number) {
        const bool floats = with.float_math != 0;
        const double beta1 =
            floats ? static_cast<double>(static_cast<float>(with.beta1)) : with.beta1;
        const double beta2 =
            floats ? static_cast<double>(static_cast<float>(with.beta2)) : with.beta2;
        gradient = with.maximized != 0 ? -gradient : gradient;
        if (with.decoupled != 0) {
            parameter *= 1 - with.lr * with.weight_decay;
        } else {
            gradient += with.weight_decay * parameter;
        }
        average += (1 - beta1) * (gradient - average);
        square = beta2 * square + (1 - beta2) * gradient * gradient;
        most_square = std::max(most_square, square);
        const double root =
            std::sqrt(amsgrad ? most_square : square) / std::sqrt(1 - std::pow(beta2, number));
        parameter -= with.lr / (1 - std::pow(beta1, number)) * average / (root + with.epsilon);
    }
};

// What is kept between steps is float; `Math` is what torch computes in.
template <typename Math>
struct TorchsFused {
    float parameter = 0;
    float average = 0;
    float square = 0;
    float most_square = 0;

    void step(float gradient, const AdamPreparation& with, bool amsgrad, float number) {
        const auto beta1 = static_cast<Math>(with.beta1);
        const auto beta2 = static_cast<Math>(with.beta2);
        const auto lr = static_cast<Math>(with.lr);
        const auto decay = static_cast<Math>(with.weight_decay);
        const auto bias1 = static_cast<Math>(1 - std::pow(beta1, static_cast<Math>(number)));
        const auto bias2_root =
            std::sqrt(static_cast<Math>(1 - std::pow(beta2, static_cast<Math>(number))));
        gradient = with.maximized != 0 ? -gradient : gradient;
        if (with.decoupled != 0) {
            parameter = static_cast<float>(std::fma(-(lr * decay), static_cast<Math>(parameter),
                                                    static_cast<Math>(parameter)));
        } else {
            gradient = static_cast<float>(
                std::fma(static_cast<Math>(parameter), decay, static_cast<Math>(gradient)));
        }
        const auto wide = static_cast<Math>(gradient);
        average = static_cast<float>(
            std::fma(beta1, static_cast<Math>(average), std::fma(-beta1, wide, wide)));
        square = static_cast<float>(
            std::fma(beta2, static_cast<Math>(square), std::fma(-beta2, wide * wide, wide * wide)));
        most_square = std::max(most_square, square);
        const auto step_size = static_cast<float>(lr / bias1);
        const auto root = static_cast<Math>(std::sqrt(amsgrad ? most_square : square));
        const auto denominator =
            static_cast<float>(root / bias2_root + static_cast<Math>(with.epsilon));
        parameter -= step_size * average / denominator;
    }
};

}  // namespace cudiag
