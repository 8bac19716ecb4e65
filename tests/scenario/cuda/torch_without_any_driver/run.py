"""torch asked for a GPU where no driver is: CUDA's own error speaks of a version that is insufficient, and torch says it better."""
from cudiag_scenario import *

no_real_driver()
world = World(*torch_wheels())

run = world.under_shim(world.python, "-c", "import torch\ntorch.zeros(1, device='cuda')")
run.fails_with("Found no NVIDIA driver on your system")

finding = run.said("cuda-no-driver", library="libcuda.so.1", code=35, torch=has("2.13.0"), runtime_cuda="13.0")
assert isinstance(finding.evidence["device_nodes"], list)
run.did_not_say("cuda-driver-too-old", "cuda-device-unavailable", "loader-missing-driver")
assert "too old" not in finding.title, finding.title
run.proposes_nothing_like("pip install", "(?i)cuda.toolkit", "nvidia-cuda-runtime", "[Uu]pgrade the", "stubs")

# torch.distributed only counts the GPUs, and says nothing of a driver.
run = world.under_shim(world.python, "-c", "import torch.distributed as d\n"
                       "d.init_process_group('nccl', store=d.HashStore(), rank=0, world_size=1)")
run.fails_with("ValueError: ProcessGroupNCCL is only supported with GPUs, no GPUs found!", status=1)
run.said("cuda-no-driver", library="libcuda.so.1", code=100)
run.did_not_say("cuda-device-unavailable", "nccl-no-interface")

# Code for the CPU that only asks is left alone, and so is one that handles the error.
world.under_shim(world.python, "-c", "import torch\nprint(torch.cuda.is_available(), torch.zeros(1).sum())").is_silent()
world.under_shim(world.python, "-c", """
import torch
try: torch.zeros(1, device="cuda")
except RuntimeError: print(torch.zeros(1))
""").is_silent()
# And one that fails of something else after it has asked.
run = world.under_shim(world.python, "-c", "import torch\ntorch.cuda.is_available()\nraise KeyError('name')")
run.says_nothing(status=1)
