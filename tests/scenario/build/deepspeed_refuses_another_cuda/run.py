"""DS_BUILD_FUSED_ADAM=1 pip install deepspeed, with a CUDA_HOME of another release than torch's: DeepSpeed's own check refuses."""
from cudiag_scenario import *

world = World(*torch_wheels(), *DEEPSPEED)
torch_world(world, links=False)
home = cuda_11_8(world)
world.set["DS_ACCELERATOR"] = "cuda"
script = world.write("setup.py", "from deepspeed.ops.op_builder import FusedAdamBuilder\nFusedAdamBuilder().builder()\n")

run = world.under_shim(world.python, script)
run.fails_with("Installed CUDA version 11.8 does not match the version torch was compiled with 13.0", status=1)

finding = run.said("build-toolkit-mismatch", nvcc=f"{home}/bin/nvcc", nvcc_release="11.8", torch=has("2.13.0"), torch_cuda="13.0")
run.proposes_nothing_like("nvidia-cuda-nvcc-cu11", "nvidia-cuda-toolkit")
