"""import torch probes for a driver, for NUMA, for compilers. On a machine without a GPU that is a healthy run."""
from cudiag_scenario import *

world = World(*torch_wheels())
world.under_shim(world.python, "-c", "import torch; print(torch.__version__, torch.cuda.is_available())").is_silent()
step = world.write("step.py", """
import torch
model = torch.nn.Linear(4, 4)
optimizer = torch.optim.AdamW(model.parameters())
model(torch.ones(2, 4)).sum().backward()
optimizer.step()
""")
world.under_shim(world.python, step).is_silent()
