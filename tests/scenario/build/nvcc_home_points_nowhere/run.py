"""CUDA_HOME names a toolkit that was removed; another nvcc is on PATH. The compilation of the C++ part goes well before it shows."""
from cudiag_scenario import *

hide_toolkit(compiler=True)
world = World(*NVCC)
home = cuda_home(world)
gone = world.root / "opt/cuda-12.4"
world.set |= {"CUDA_HOME": str(gone), "PATH": f"{home}/bin:{world.set['PATH']}"}
build = ninja_build(world, kernel(world))

run = world.under_shim("ninja", "-j1", "-C", build, fresh=build)
run.fails_with(f"{gone}/bin/nvcc: not found", status=1)

finding = run.said("build-missing-compiler", program="nvcc", asked=f"{gone}/bin/nvcc", cuda_home=gone, state="absent",
                   copies=has(f"{home}/bin/nvcc"), path=has("/usr/bin"))
finding.proposes(f"export CUDA_HOME={re.escape(str(home))}", first=True)
run.proposes_nothing_like("apt-get install nvidia-cuda-toolkit", "pip install ninja")

finding.apply("export CUDA_HOME=")
world.under_shim("ninja", "-j1", "-C", build, fresh=build).is_silent()
