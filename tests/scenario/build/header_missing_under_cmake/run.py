"""CMake's language CUDA: configuring works, its failed probes are none of ours, and the build lacks a header."""
from cudiag_scenario import *

hide_toolkit(compiler=True)
need_program("cmake")
world = World(*NVCC, pip_inside=True)
home = cuda_home(world)
fused = kernel(world, "cusparse.h")
build, configure = cmake_build(world, fused)
world.under_shim(*configure, fresh=build).is_silent()

run = world.under_shim("cmake", "--build", build, fresh=build)
run.fails_with(f"{fused}:1:10: fatal error: cusparse.h: No such file or directory", status=2)

finding = run.said("build-missing-header", header="cusparse.h", included_by=f"{fused}:1", source=fused,
                   searched=has(f"{home}/include"), cuda_home=home, cuda_release="13.0")
finding.proposes(r"pip install .*nvidia-cusparse==12\.6", first=True)
run.proposes_nothing_like("-cu12", "nvidia-cuda-toolkit", "cp ")

finding.apply("pip install")
world.under_shim("cmake", "--build", build, fresh=build).is_silent()
assert (build / "libfused.so").exists()
