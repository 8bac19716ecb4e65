"""The package of the driver was updated, and the kernel module of before still runs: 803 until the next boot."""
from cudiag_scenario import *

VERSION = "NVRM version: NVIDIA UNIX x86_64 Kernel Module  570.86.15  Fri Jan 17 16:12:37 UTC 2025"
folder = mount_point("driver-proc")
if not os.path.isdir("/proc/driver"):
    raise CannotRun("no /proc/driver on this machine")
in_mount_namespace(["mount", "-t", "tmpfs", "tmpfs", "/proc/driver"], ["mkdir", "/proc/driver/nvidia"],
                   ["printf", "'%s\\n'", f"'{VERSION}'", ">/proc/driver/nvidia/version"])

world = World(*torch_wheels())
cache = world.root / "ld.so.cache"
use = (world.python, "-c", "import torch\ntorch.zeros(1, device='cuda')")
folder = fake_driver(world, init=803, release="570.133.20")

# Chosen by LD_LIBRARY_PATH, as a copy beside the installed driver is: that can be mended by the user.
run = world.under_shim(*use)
run.fails_with("Error 803: system has unsupported display driver / cuda driver combination")
finding = run.said("cuda-device-unavailable", code=803, driver_release="570.133.20", kernel_module=has("570.86.15"))
assert "library 570.133.20, kernel module 570.86.15" in finding.title, finding.title
finding.proposes("unset LD_LIBRARY_PATH", first=True)
run.proposes_nothing_like("pip install", "reboot", "nvidia-driver")
