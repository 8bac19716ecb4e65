"""torch.cuda.nccl shows NCCL's result and not its last error: "invalid usage" alone settles nothing, and nothing is said."""
from cudiag_scenario import *

world = World(*torch_wheels())
meet = ("-c", "import torch\nprint(len(torch.cuda.nccl.unique_id()))")
if world.alone(world.python, *meet)[0] != 0:
    raise CannotRun("NCCL finds no network interface on this machine")
world.set["NCCL_SOCKET_IFNAME"] = "eth99"
run = world.under_shim(world.python, *meet)
run.fails_with("NCCL Error 5: invalid usage (run with NCCL_DEBUG=WARN for details)")
run.says_nothing(status=1)
