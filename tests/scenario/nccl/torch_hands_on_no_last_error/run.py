"""torch.cuda.nccl shows NCCL's result and not its last error: "invalid usage". What NCCL said is recorded with the call that torch made."""
from cudiag_scenario import *

world = World(*torch_wheels())
meet = ("-c", "import torch\nprint(len(torch.cuda.nccl.unique_id()))")
if world.alone(world.python, *meet)[0] != 0:
    raise CannotRun("NCCL finds no network interface on this machine")
world.under_shim(world.python, *meet).is_silent()
world.set["NCCL_SOCKET_IFNAME"] = "eth99"
run = world.under_shim(world.python, *meet)
run.fails_with("NCCL Error 5: invalid usage (run with NCCL_DEBUG=WARN for details)")
assert "no socket interface found" not in run.alone[2], "torch hands it on: the story has no point"
finding = run.said("nccl-no-interface", result="ncclInvalidUsage", last_error="Bootstrap : no socket interface found", call="ncclGetUniqueId",
                   called_by=ends("/torch/lib/libtorch_cuda.so"), nccl=ends("/nvidia/nccl/lib/libnccl.so.2"))
finding.proposes("unset NCCL_SOCKET_IFNAME", first=True)
assert finding.json["where"]["python"], finding.json["where"]
del world.set["NCCL_SOCKET_IFNAME"]
world.under_shim(world.python, *meet).is_silent()
