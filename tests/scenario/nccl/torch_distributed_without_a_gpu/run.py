"""torch refuses its NCCL backend where no GPU is. The error names NCCL, which was never called: nothing is to be said of it."""
from cudiag_scenario import *

no_real_driver()
world = World(*torch_wheels())
program = world.write("train.py", """
import torch.distributed as dist
dist.init_process_group("nccl", init_method="tcp://127.0.0.1:29577", rank=0, world_size=1)
dist.barrier()
""")
run = world.under_shim(world.python, program)
run.fails_with("NCCL")
assert not [f.slug for f in run.findings() if f.slug.startswith("nccl")], run.findings()
run.proposes_nothing_like("pip install", "NCCL_", "shm")
