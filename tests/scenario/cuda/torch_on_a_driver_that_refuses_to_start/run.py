"""A driver is there and gives a code instead of a GPU. Every code has its own meaning, and none is mended by a package."""
from cudiag_scenario import *

world = World(*torch_wheels())
use = (world.python, "-c", "import torch\ntorch.zeros(1, device='cuda')")
CODES = {3: "CUDA driver initialization failed", 46: "Error 46: CUDA-capable device(s) is/are busy or unavailable",
         100: "No CUDA GPUs are available", 802: "Error 802: system not yet initialized",
         803: "Error 803: system has unsupported display driver / cuda driver combination", 999: "CUDA unknown error"}

for code, words in CODES.items():
    world.set.pop("LD_LIBRARY_PATH", None)
    fake_driver(world, init=code, directory=f"driver-{code}")
    run = world.under_shim(*use)
    run.fails_with(words)
    finding = run.said("cuda-device-unavailable", code=code, cuda_visible_devices="not set", runtime_cuda="13.0",
                       driver=has(f"driver-{code}"))
    finding.does_not_propose("pip install", "(?i)cuda.toolkit", "reinstall", "nvidia-driver", "unset CUDA_VISIBLE_DEVICES")
    run.did_not_say("cuda-driver-too-old", "cuda-no-driver")
    print(f"{code}: {finding.title}")

world.set["LD_LIBRARY_PATH"] = str(world.root / "driver-802")
run = world.under_shim(*use)
run.said("cuda-device-unavailable", code=802).proposes(r"Fabric")

# The variable that hides every GPU is named only where it does.
world.set |= {"LD_LIBRARY_PATH": str(world.root / "driver-100"), "CUDA_VISIBLE_DEVICES": "-1"}
run = world.under_shim(*use)
run.fails_with("No CUDA GPUs are available")
run.said("cuda-device-unavailable", code=100, cuda_visible_devices='"-1"').proposes("unset CUDA_VISIBLE_DEVICES", first=True)

# The variable is innocent of 999, though torch's text names it.
world.set |= {"LD_LIBRARY_PATH": str(world.root / "driver-999"), "CUDA_VISIBLE_DEVICES": "0"}
run = world.under_shim(*use)
run.fails_with("CUDA_VISIBLE_DEVICES after program start")
run.said("cuda-device-unavailable", code=999).does_not_propose("CUDA_VISIBLE_DEVICES")

# Asking is no failure.
world.under_shim(world.python, "-W", "ignore", "-c", "import torch\nprint(torch.cuda.is_available())").is_silent()
