"""The arithmetic of kernels/adam_math.h, and the model in double precision that unit tests hold it against, are those of torch itself.

The kernel's very code, compiled for the CPU, makes 100 steps beside torch.optim on CPU tensors: 5e-6 relative, since torch rounds 1 - lr * decay
and beta to float there, which is 3e-8 in each step; the model in double precision 1e-12. tests/gpu/adam.py compares with torch's kernel: 1e-6.
"""
from cudiag_scenario import *

ROOT = Path(__file__).resolve().parents[4]
SOURCE = """
#include "kernels/adam_math.h"
#include "tests/unit/kernels/adam_model.h"
using namespace cudiag;
static AdamPreparation options(const double* n, int decoupled, int maximized) {
    AdamPreparation with{};
    with.lr = n[0]; with.beta1 = n[1]; with.beta2 = n[2]; with.epsilon = n[3]; with.weight_decay = n[4];
    with.decoupled = decoupled; with.maximized = maximized;
    return with;
}
extern "C" void kernel_step(int count, const float* gradient, float* p, float* a, float* s, float* m, int amsgrad, const double* numbers, int decoupled, int maximized, int step) {
    const AdamCoefficients with = adam_coefficients(options(numbers, decoupled, maximized), step);
    for (int i = 0; i < count; ++i) adam_update(p[i], gradient[i], a[i], s[i], amsgrad ? &m[i] : nullptr, with);
}
extern "C" void model_step(int count, const double* gradient, double* p, double* a, double* s, double* m, int amsgrad, const double* numbers, int decoupled, int maximized, int step) {
    for (int i = 0; i < count; ++i) {
        AdamModel model{p[i], a[i], s[i], m[i]};
        model.step(gradient[i], options(numbers, decoupled, maximized), amsgrad != 0, step);
        p[i] = model.parameter; a[i] = model.average; s[i] = model.square; m[i] = model.most_square;
    }
}
"""
BESIDE_TORCH = """
import ctypes, itertools, sys, torch
steps = ctypes.CDLL(sys.argv[1])
NUMBERS = dict(lr=1e-3, betas=(0.9, 0.999), eps=1e-8, weight_decay=0.01)
def pointer(t): return ctypes.c_void_p(t.data_ptr())
worst = {}
for dtype, amsgrad, decoupled, maximize in itertools.product((torch.float32, torch.float64), (False, True), (True, False), (False, True)):
    torch.manual_seed(3)
    theirs = torch.nn.Parameter(0.05 * torch.randn(10_000, dtype=dtype))
    p = theirs.detach().clone()
    a, s, m = (torch.zeros_like(p) for _ in range(3))
    kind = torch.optim.AdamW if decoupled else torch.optim.Adam
    optimizer = kind([theirs], amsgrad=amsgrad, maximize=maximize, fused=dtype == torch.float32, foreach=False, **NUMBERS)
    numbers = (ctypes.c_double * 5)(NUMBERS["lr"], *NUMBERS["betas"], NUMBERS["eps"], NUMBERS["weight_decay"])
    step = steps.kernel_step if dtype == torch.float32 else steps.model_step
    for number in range(1, 101):
        theirs.grad = 0.02 * (1 + number % 7) * torch.randn(10_000, dtype=dtype)
        step(len(p), pointer(theirs.grad), pointer(p), pointer(a), pointer(s), pointer(m), int(amsgrad), numbers, int(decoupled), int(maximize), number)
        optimizer.step()
    state = optimizer.state[theirs]
    pairs = [(p, theirs.detach()), (a, state["exp_avg"]), (s, state["exp_avg_sq"])] + ([(m, state["max_exp_avg_sq"])] if amsgrad else [])
    for ours, right in pairs:
        ours, right = ours.double(), right.double()
        scale = torch.maximum(right.abs(), right.square().mean().sqrt())
        worst[dtype] = max(worst.get(dtype, 0), float(((ours - right).abs() / scale).max()))
print({str(k): v for k, v in worst.items()})
assert worst[torch.float32] < 5e-6 and worst[torch.float64] < 1e-12, worst
"""

world = World(*torch_wheels())
library = world.library("steps.so", SOURCE, "-std=c++20", "-O2", "-march=native", f"-I{ROOT}")
status, stdout, stderr = world.alone(world.python, "-c", BESIDE_TORCH, library)
print(stdout)
assert status == 0, stderr
