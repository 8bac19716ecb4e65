"""Builds of a CUDA extension that go well, whole, in part, and with nothing left to do."""
from cudiag_scenario import *

hide_toolkit(compiler=True)
python_headers()
world = World(*NVCC, "setuptools", "wheel", pip_inside=True)
cuda_home(world)
fused = kernel(world, "cuda_fp16.h")
build = ninja_build(world, fused)

world.under_shim("ninja", "-v", "-j1", "-C", build, fresh=build).is_silent()
world.under_shim("ninja", "-C", build).is_silent()
world.under_shim("make", "-j2", "-C", make_build(world, fused), twin=WORLDS_ONLY).is_silent()
package = setup_build(world, fused)
world.under_shim("pip", "install", "--no-build-isolation", "--no-deps", package, twin=WORLDS_ONLY).is_silent()
world.under_shim(world.python, "-c", "import fused_ops").is_silent()
