"""Somebody has raised NCCL above what torch asks for, as inference servers do. NCCL fails of something else: that is a note
beside it, no cause."""
from cudiag_scenario import *

world = World(*[w for w in torch_wheels() if "nccl" not in w], "nvidia-nccl-cu13==2.30.7")
meet = ("-c", "import torch\nprint(len(torch.cuda.nccl.unique_id()))")
if "socket interface" in world.alone(world.python, *meet, env={"NCCL_DEBUG": "WARN"})[1]:
    raise CannotRun("NCCL finds no network interface on this machine")
world.under_shim(world.python, *meet).is_silent()                      # by itself no failure

world.set["NCCL_SOCKET_IFNAME"] = "eth99"
run = world.under_shim(world.python, *meet)
run.fails_with("NCCL Error 5: invalid usage")
run.said("nccl-no-interface", nccl_version="2.30.7", last_error=has("no socket interface found"))
finding = run.said("nccl-version-mix", printed=False, nccl=ends("/nvidia/nccl/lib/libnccl.so.2"), nccl_version="2.30.7",
                   torch=has("2.13.0"), nccl_package=has("nvidia-nccl-cu13 2.30.7"), torch_asks_for="nvidia-nccl-cu13==2.29.7")
assert finding.json["severity"] == "note" and not finding.json["fixes"], finding.json
assert len(run.findings()) == 2, run.findings()
