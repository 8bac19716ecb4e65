"""nvcc is there, and needs a host compiler for every one of its steps, which is not. It speaks of preprocessing."""
from cudiag_scenario import *

hide_toolkit(compiler=True)
world = World(*NVCC)
home = cuda_home(world)
path = only(world, "sh", "rm", "cat")
fused = kernel(world)
nvcc = [f"{home}/bin/nvcc", "-arch=sm_90", "-c", fused, "-o", world.root / "fused.o"]

run = world.under_shim(*nvcc)
run.fails_with("nvcc fatal   : Failed to preprocess host compiler properties.", status=1)

finding = run.said("build-missing-compiler", program="gcc", asked="gcc", state="absent", path=has(path[1]))
run.did_not_say("build-missing-header", "build-unsupported-host-compiler")
run.proposes_nothing_like("pip install", "export CUDA_HOME")
