"""Two NCCL wheels bring the same path, the older file has won, and pip says that every requirement is satisfied."""
from cudiag_scenario import *

world = World("nvidia-nccl-cu12==2.18.3", *torch_wheels(), pip_inside=True)   # files that are there already stay

run = world.under_shim(world.python, "-c", "import torch")
run.fails_with("libtorch_cuda.so: undefined symbol: nccl")

finding = run.said("package-broken", path=ends("/nvidia/nccl/lib/libnccl.so.2"), needed_by=ends("/libtorch_cuda.so"))
finding.says("nvidia-nccl-cu12 2.18.3", "nvidia-nccl-cu13 2.29.7")
finding.proposes(r"pip uninstall -y .*nvidia-nccl-cu1[23].* && .*pip install --no-deps nvidia-nccl-cu13==2.29.7")
finding.does_not_propose(r"pip install .*\btorch[=\s]")
run.did_not_say("nccl-version-mix")                       # the loader's own finding tells it

finding.apply("uninstall")
world.under_shim(world.python, "-c", "import torch; print(torch.__version__)").is_silent()
