"""torch for CUDA 13 over a driver of CUDA 12.4. The advice is about the driver or about torch, never about a toolkit."""
from cudiag_scenario import *

world = World(*torch_wheels())
driver = fake_driver(world, version=12040, release="550.54.14")

run = world.under_shim(world.python, "-c", "import torch\ntorch.zeros(1, device='cuda')")
run.fails_with("The NVIDIA driver on your system is too old (found version 12040)")

finding = run.said("cuda-driver-too-old", driver=str(driver / "libcuda.so.1"), driver_chosen_by=has("LD_LIBRARY_PATH"),
                   driver_release="550.54.14", driver_cuda="12.4", minimum="580.65.06", runtime=has("libcudart.so.13"),
                   runtime_cuda="13.0", torch=has("2.13.0"), forward_compat="none seen")
finding.proposes(r"branch 580 or newer", first=True)
finding.proposes(r"pip install 'torch==2\.6\.\*'")       # the newest that is built for 12.4
run.did_not_say("cuda-no-driver", "loader-missing-driver", "cuda-device-unavailable")
run.proposes_nothing_like("(?i)cuda.toolkit", "nvidia-cuda-runtime", "conda")

# A driver of that CUDA is not too old: what it then lacks is a GPU.
fake_driver(world, init=100, directory="upgraded", release="580.65.06")
run = world.under_shim(world.python, "-c", "import torch\ntorch.zeros(1, device='cuda')")
run.fails_with("No CUDA GPUs are available").did_not_say("cuda-driver-too-old")
run.said("cuda-device-unavailable", code=100)
