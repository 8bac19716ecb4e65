"""torch puts ccache before its compilers where it is installed; CUDA_HOME leads to no nvcc, and ccache says so in its own words."""
from cudiag_scenario import *

need_program("ccache")
world = World(*torch_wheels(), *NVCC)
home = torch_world(world)
gone = world.root / "opt/cuda-12.4"
world.set |= {"CUDA_HOME": str(gone), "PATH": f"{home}/bin:{world.set['PATH']}", "TORCH_NO_COMPILER_WRAPPER": None,
              "CCACHE_DIR": str(world.root / "ccache")}
train, build = torch_build(world)

run = world.under_shim(*train, fresh=build.parent)
run.fails_with("ccache: error", status=1)

finding = run.said("build-missing-compiler", program="nvcc", asked=f"{gone}/bin/nvcc", cuda_home=gone, state="absent")
finding.proposes(f"export CUDA_HOME={re.escape(str(home))}", first=True)

finding.apply("export CUDA_HOME=")
world.under_shim(*train, fresh=build.parent).is_silent()
