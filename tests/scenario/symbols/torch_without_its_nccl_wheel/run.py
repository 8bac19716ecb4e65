"""torch's NCCL wheel is gone, and the older NCCL of a toolkit is taken in its place."""
from cudiag_scenario import *

world = World(*torch_wheels(), pip_inside=True)
world.uninstall("nvidia-nccl-cu13")
older = world.root / "opt/cuda/lib64"
link_tree(wheel("nvidia-nccl-cu13==2.28.9") / "nvidia/nccl/lib", older)
world.set["LD_LIBRARY_PATH"] = str(older)

run = world.under_shim(world.python, "-c", "import torch")
run.fails_with("undefined symbol: ncclCommResume")

finding = run.said("loader-symbol-version", symbol="ncclCommResume", file=ends("/torch/lib/libtorch_cuda.so"),
                   provider_path=older / "libnccl.so.2")
finding.says("2.28.9", "LD_LIBRARY_PATH")
finding.proposes(r"pip install .*nvidia-nccl-cu13")
finding.does_not_propose(r"pip install .*\btorch[=\s]")
run.did_not_say("nccl-version-mix")                       # the loader's own finding tells it

finding.apply("nvidia-nccl-cu13")
world.set.pop("LD_LIBRARY_PATH")
world.under_shim(world.python, "-c", "import torch; print(torch.__version__)").is_silent()
