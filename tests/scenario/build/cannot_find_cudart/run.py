"""The wheel of the runtime has libcudart.so.13 for programs, and not the libcudart.so that a linker asks for."""
from cudiag_scenario import *

hide_toolkit(compiler=True)
world = World(*NVCC)
home = cuda_home(world, links=False)
build = ninja_build(world, kernel(world))

run = world.under_shim("ninja", "-j1", "-C", build, fresh=build)
run.fails_with("cannot find -lcudart", status=1)

finding = run.said("build-link-failed", library="cudart", searched=has(f"{home}/lib64"),
                   present=has(f"{home}/lib/libcudart.so.13"), needed_by=has("fused.so"))
finding.proposes(r"ln -s", first=True)
run.did_not_say("build-missing-header", "loader-missing-library")
run.proposes_nothing_like(r"cp ", "nvidia-cuda-runtime-cu12", "nvidia-cuda-toolkit")

finding.apply("ln -s")
world.under_shim("ninja", "-j1", "-C", build, fresh=build).is_silent()
