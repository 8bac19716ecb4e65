"""An image brings cuda-compat and puts it first; the GPU is none that forward compatibility is for (804)."""
from cudiag_scenario import *

world = World(*torch_wheels())
compat = fake_driver(world, init=804, directory="usr/local/cuda-13.0/compat", release="580.65.06")
run = world.under_shim(world.python, "-c", "import torch\ntorch.zeros(1, device='cuda')")
run.fails_with("Error 804: forward compatibility was attempted on non supported HW")

finding = run.said("cuda-driver-too-old", code=804, forward_compat=has("in use"), driver=has("/compat/"))
finding.proposes("unset LD_LIBRARY_PATH", first=True)
run.proposes_nothing_like("pip install", "(?i)cuda.toolkit")
run.did_not_say("cuda-device-unavailable", "cuda-no-driver")

# Without it the machine's own driver is asked, and here there is none: another finding.
finding.apply("LD_LIBRARY_PATH")
run = world.under_shim(world.python, "-c", "import torch\ntorch.zeros(1, device='cuda')")
run.fails_with("Found no NVIDIA driver").did_not_say("cuda-driver-too-old")
run.said("cuda-no-driver")
