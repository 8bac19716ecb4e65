"""The programmer's own mistakes: the compiler says all that there is to say."""
from cudiag_scenario import *

hide_toolkit(compiler=True)
world = World(*NVCC)
cuda_home(world)
fused = kernel(world, "cuda_fp16.h")
build = ninja_build(world, fused)
right = fused.read_text()

fused.write_text(right.replace("x[i] *= by;", "x[i] *= by"))
run = world.under_shim("ninja", "-j1", "-C", build, fresh=build)
run.says_nothing(status=1)
assert "expected a" in run.stdout, run

fused.write_text(right.replace("blockIdx.x", "blockIndex.x"))
world.under_shim("ninja", "-j1", "-C", build, fresh=build).says_nothing(status=1)
world.write("csrc/main.cpp", "int twice(float* x) { return undeclared(x); }\n")
world.under_shim("ninja", "-j1", "-C", build, "main.o", fresh=build).says_nothing(status=1)
