"""Only the compiler's packages were installed. The header that is missing stands in no source: nvcc includes it before all else."""
from cudiag_scenario import *

hide_toolkit(compiler=True)
world = World(*(each for each in NVCC if "cuda-runtime" not in each), pip_inside=True)
home = cuda_home(world, links=False)
build = make_build(world, kernel(world))

run = world.under_shim("make", "-C", build, "fused.o", fresh=build)
run.fails_with("fatal error: cuda_runtime.h: No such file or directory", status=2)

finding = run.said("build-missing-header", header="cuda_runtime.h", source=ends("csrc/fused.cu"), searched=has("nvidia/cu13"),
                   cuda_home=home, cuda_release="13.0")
finding.proposes(r"pip install .*nvidia-cuda-runtime==13\.0", first=True)
finding.does_not_propose("nvidia-cuda-runtime-cu1[12]")

finding.apply("pip install")
world.under_shim("make", "-C", build, "fused.o", fresh=build).is_silent()
