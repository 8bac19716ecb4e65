"""torch was built with CUDA 13.0, and CUDA_HOME is 11.8, which knows no C++20. The build says which option it does not like."""
from cudiag_scenario import *

world = World(*torch_wheels())
torch_world(world, links=False)
home = cuda_11_8(world)
train, build = torch_build(world)

run = world.under_shim(*train, fresh=build.parent)
run.fails_with("nvcc fatal   : Value 'c++20' is not defined for option 'std'", status=1)

finding = run.said("build-toolkit-mismatch", nvcc=f"{home}/bin/nvcc", nvcc_release="11.8", torch=has("2.13.0"), torch_cuda="13.0")
run.did_not_say("build-unsupported-host-compiler", "build-unsupported-arch")
run.proposes_nothing_like("nvidia-cuda-nvcc-cu11", r"-std=", "nvidia-cuda-toolkit")
