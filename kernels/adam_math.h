// The arithmetic of AdamW for one element, and of a step's coefficients: the same code in the
// kernel and in the tests that hold it against a model in double precision. Source of the formulas:
// torch's fused_adam_utils.cuh and torch/optim/adam.py (2.9, 2.13).
#pragma once

#include <cmath>

#include "kernels/adam_table.h"

#ifdef __CUDACC__
#define CUDIAG_ANYWHERE __host__ __device__ __forceinline__
#else
#define CUDIAG_ANYWHERE inline
#endif

namespace cudiag {

// One element. `most_square` is null but for AMSGrad. The gradient is given unscaled, and not
// rounded to 16 bits as the caller stores it. With kFloatMath operation by operation
// as torch does from 2.11 on: the same bits. Source: SASS of libtorch_cuda.so of torch
// 2.11.0+cu130, sm_90 (FusedAdamMathFunctor for float, Half and BFloat16, with and without
// AMSGrad). There everything is float; divisions and roots are rounded to nearest (div.rn, sqrt.rn,
// no ftz), products are fused where they are here, and 16 bits are rounded to once, when stored.
// One thing is the compiler's whim and not followed: of Adam with L2, without AMSGrad and with
// gradients that are not scaled, it rounds l2 * parameter by itself in a quarter of the elements
// (in all, if maximized; not for sm_100 and sm_120). docs/gpu-results.md says how that was
// compared. Torch before 2.11 computed in double; here averages then move by a share of the
// distance, which keeps the error of a float beta out of them: the nearest float to 0.999 is off
// by 1.3e-8, which is 1e-6 after 100 steps, that to 0.001 by 3e-11.
CUDIAG_ANYWHERE void adam_update(float& parameter, float gradient, float& average, float& square,
                                 float* most_square, const AdamCoefficients& with) {
    if ((with.flags & kMaximized) != 0) {
        gradient = -gradient;
    }
    if (with.l2 != 0) {  // an infinite parameter times 0 would be no number
        gradient = fmaf(with.l2, parameter, gradient);
    }
    if (with.decay != 0) {
        parameter = fmaf(-with.decay, parameter, parameter);
    }
    if ((with.flags & kFloatMath) != 0) {
        const float squared = gradient * gradient;
        average = fmaf(with.beta1, average, fmaf(-with.beta1, gradient, gradient));
        square = fmaf(with.beta2, square, fmaf(-with.beta2, squared, squared));
    } else {
        average = fmaf(with.one_minus_beta1, gradient - average, average);
        square = fmaf(with.one_minus_beta2, fmaf(gradient, gradient, -square), square);
    }
    float under_root = square;
    if (most_square != nullptr) {
        under_root = *most_square < square ? square : *most_square;
        *most_square = under_root;
    }
    const float denominator = sqrtf(under_root) / with.bias2_sqrt + with.epsilon;
    parameter -= with.step_size * average / denominator;
}

// The coefficients of step number `step` (the first is 1).
CUDIAG_ANYWHERE AdamCoefficients adam_coefficients(const AdamPreparation& given, float step) {
    AdamCoefficients with{};
    with.flags = given.maximized != 0 ? kMaximized : 0;
    if (given.float_math != 0) {
        const auto lr = static_cast<float>(given.lr);
        with.beta1 = static_cast<float>(given.beta1);
        with.beta2 = static_cast<float>(given.beta2);
        with.step_size = lr / (1 - powf(with.beta1, step));
        with.bias2_sqrt = sqrtf(1 - powf(with.beta2, step));
        with.decay = given.decoupled != 0 ? lr * static_cast<float>(given.weight_decay) : 0;
        with.flags |= kFloatMath;
    } else {
        const auto steps = static_cast<double>(step);
        with.one_minus_beta1 = static_cast<float>(1 - given.beta1);
        with.one_minus_beta2 = static_cast<float>(1 - given.beta2);
        with.step_size = static_cast<float>(given.lr / (1 - pow(given.beta1, steps)));
        with.bias2_sqrt = static_cast<float>(sqrt(1 - pow(given.beta2, steps)));
        with.decay = given.decoupled != 0 ? static_cast<float>(given.lr * given.weight_decay) : 0;
    }
    with.l2 = given.decoupled != 0 ? 0 : static_cast<float>(given.weight_decay);
    with.epsilon = static_cast<float>(given.epsilon);
    return with;
}

}  // namespace cudiag
