"""DeepSpeed asks for ninja itself, in words of its own; once that is there, for a toolkit. Each is told when it is the one that fails."""
from cudiag_scenario import *

hide_toolkit_programs_and_headers(default_home=False)
world = World(*torch_wheels(), *DEEPSPEED, pip_inside=True)
torch_world(world, links=False)
world.set |= {"CUDA_HOME": None, "DS_ACCELERATOR": "cuda"}
only(world, "sh", "bash", "env", "c++", "gcc", "as", "ld", "which")
train = [world.python, "-c", "from deepspeed.ops.op_builder import FusedAdamBuilder\nFusedAdamBuilder().load()"]

run = world.under_shim(*train)
run.fails_with("RuntimeError: Unable to JIT load the fused_adam op due to ninja not being installed.", status=1)
finding = run.said("build-missing-compiler", program="ninja", state="absent", path=has(str(world.root / "bin")))
finding.proposes("pip install ninja")

finding.apply("pip install ninja")
run = world.under_shim(*train)
run.fails_with("CUDA_HOME environment variable is not set", status=1)
finding = run.said("build-missing-compiler", program="nvcc", state="absent", copies=[])
finding.proposes(r"pip install .*nvidia-cuda-nvcc==13\.0", first=True)
run.proposes_nothing_like("pip install ninja", "nvidia-cuda-nvcc-cu12")
