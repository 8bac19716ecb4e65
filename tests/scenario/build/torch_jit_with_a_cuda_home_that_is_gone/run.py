"""torch believes CUDA_HOME, and the shell that ninja starts finds no nvcc there."""
from cudiag_scenario import *

world = World(*torch_wheels(), *NVCC)
home = torch_world(world)
gone = world.root / "opt/cuda-12.4"
world.set |= {"CUDA_HOME": str(gone), "PATH": f"{home}/bin:{world.set['PATH']}"}
train, build = torch_build(world)

run = world.under_shim(*train, fresh=build.parent)
run.fails_with(f"{gone}/bin/nvcc: not found", status=1)

finding = run.said("build-missing-compiler", program="nvcc", asked=f"{gone}/bin/nvcc", cuda_home=gone, state="absent",
                   copies=has(f"{home}/bin/nvcc"))
finding.proposes(f"export CUDA_HOME={re.escape(str(home))}", first=True)

finding.apply("export CUDA_HOME=")
world.under_shim(*train, fresh=build.parent).is_silent()
