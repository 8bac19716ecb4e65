"""nvcc is there and cannot start: its half of a copied toolkit. Present but broken is not absent."""
from cudiag_scenario import *

hide_toolkit(compiler=True)
world = World(*NVCC)
home = cuda_home(world)
nvcc = home / "bin/nvcc"
nvcc.rename(home / "bin/nvcc.real")
nvcc.write_bytes(b"")
nvcc.chmod(0o644)
build = ninja_build(world, kernel(world))

run = world.under_shim("ninja", "-j1", "-C", build, fresh=build)
run.fails_with(f"{nvcc}: Permission denied", status=1)

finding = run.said("build-missing-compiler", program="nvcc", asked=nvcc, cuda_home=home, state="broken")
run.did_not_say("build-missing-header", "build-link-failed")
run.proposes_nothing_like("export CUDA_HOME=")
