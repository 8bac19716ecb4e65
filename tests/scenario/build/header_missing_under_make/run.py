"""A Makefile calls nvcc of a toolkit of wheels, which lacks the headers of cuRAND. Nothing of Python is in this build."""
from cudiag_scenario import *

hide_toolkit(compiler=True)
need_program("make")
world = World(*NVCC, pip_inside=True)
home = cuda_home(world)
fused = kernel(world, "curand_kernel.h")
build = make_build(world, fused)

run = world.under_shim("make", "-C", build, fresh=build)
run.fails_with(f"{fused}:1:10: fatal error: curand_kernel.h: No such file or directory", status=2)

finding = run.said("build-missing-header", header="curand_kernel.h", included_by=f"{fused}:1", source=fused,
                   searched=has(f"{home}/include"), cuda_home=home, cuda_release="13.0")
finding.proposes(r"pip install .*nvidia-curand==10\.4", first=True)
run.proposes_nothing_like("-cu12", "-cu11", "nvidia-cuda-toolkit", "cusparse")

finding.apply("pip install")
world.under_shim("make", "-C", build, fresh=build).is_silent()
assert (build / "fused.so").exists()
