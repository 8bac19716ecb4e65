"""The build asks for sm_70, which CUDA 13 dropped. The list comes from the build's own file, whatever torch's variable says."""
from cudiag_scenario import *

hide_toolkit(compiler=True)
world = World(*NVCC)
home = cuda_home(world)
build = ninja_build(world, kernel(world), arch="70")
world.set["TORCH_CUDA_ARCH_LIST"] = "9.0"

run = world.under_shim("ninja", "-j1", "-C", build, fresh=build)
run.fails_with("nvcc fatal   : Unsupported gpu architecture 'compute_70'", status=1)

finding = run.said("build-unsupported-arch", architecture=has("70"), nvcc=f"{home}/bin/nvcc", nvcc_release="13.0",
                   supported=has("75"), torch_cuda_arch_list="9.0")
finding.does_not_propose("export TORCH_CUDA_ARCH_LIST", "pip install")

ninja_build(world, kernel(world), arch="75")
world.under_shim("ninja", "-j1", "-C", build, fresh=build).is_silent()
