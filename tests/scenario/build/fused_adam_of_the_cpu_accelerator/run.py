"""No GPU was seen, so DeepSpeed compiled C++ for a minute and a half: the op loads, and cannot serve the training."""
from cudiag_scenario import *

if list(Path("/dev").glob("nvidia[0-9]*")):
    raise CannotRun("a GPU is here, which DeepSpeed would take")
world = World(*torch_wheels(), *DEEPSPEED, *NVCC)
torch_world(world)
extensions = world.root / "extensions"
extensions.mkdir()
world.set |= {"DS_ACCELERATOR": None, "MAX_JOBS": "2"}
script = world.write("finetune.py", """import torch
from deepspeed.ops.op_builder import FusedAdamBuilder
from deepspeed.accelerator import get_accelerator
op = get_accelerator().create_op_builder("FusedAdamBuilder").load()
torch.zeros(1).cuda()
""")

run = world.under_shim(world.python, script, fresh=extensions, twin=WORLDS_ONLY)
run.fails_with("Found no NVIDIA driver on your system", status=1)

finding = run.said("build-wrong-accelerator", accelerator="cpu", why=has("DS_ACCELERATOR is not set"), sources=ends("csrc/cpu/adam/fused_adam.cpp"))
finding.proposes("export DS_ACCELERATOR=cuda", first=True)

slow = run.said("build-slow", printed=False, cached=False, steps=has("cc1plus"))
assert slow.evidence["seconds"] > 30, describe(slow.json)
slow.proposes("DS_BUILD_FUSED_ADAM=1")
run.did_not_say("build-missing-compiler")
