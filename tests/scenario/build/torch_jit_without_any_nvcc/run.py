"""No toolkit on this machine, and no CUDA_HOME: torch's wheels bring what runs kernels, and nothing that compiles them."""
from cudiag_scenario import *

hide_toolkit_programs_and_headers(default_home=False)
world = World(*torch_wheels(), pip_inside=True)
torch_world(world, links=False)
world.set["CUDA_HOME"] = None
train, build = torch_build(world)

run = world.under_shim(*train, fresh=build.parent)
run.fails_with("OSError: CUDA_HOME environment variable is not set. Please set it to your CUDA install root.", status=1)

finding = run.said("build-missing-compiler", program="nvcc", state="absent", path=has("/usr/bin"), copies=[])
finding.proposes(r"pip install .*nvidia-cuda-nvcc==13\.0", first=True)
finding.does_not_propose(r"^export CUDA_HOME=/usr/local/cuda$", "nvidia-cuda-nvcc-cu12", "nvidia-cuda-toolkit")

finding.apply("pip install")
world.under_shim(*train, fresh=build.parent).is_silent()
