"""The package of the driver was updated, and the kernel module of before still runs: 803 until the next boot."""
from cudiag_scenario import *

VERSION = "NVRM version: NVIDIA UNIX x86_64 Kernel Module  570.86.15  Fri Jan 17 16:12:37 UTC 2025"
folder = mount_point("driver-proc")
if not os.path.isdir("/proc/driver"):
    raise CannotRun("no /proc/driver on this machine")
# What a package changes, over the system's own.
changed = ["/usr/lib/x86_64-linux-gnu", "/var/lib/dpkg", "/var/log"]
overlays = [words for number, place in enumerate(changed) for words in (
    ["mkdir", "-p", f"{folder}/{number}/up", f"{folder}/{number}/work"],
    ["mount", "-t", "overlay", "overlay", f"-olowerdir={place},upperdir={folder}/{number}/up,workdir={folder}/{number}/work", place])]
in_mount_namespace(["mount", "-t", "tmpfs", "tmpfs", "/proc/driver"], ["mkdir", "/proc/driver/nvidia"],
                   ["printf", "'%s\\n'", f"'{VERSION}'", ">/proc/driver/nvidia/version"], ["mount", "-t", "tmpfs", "tmpfs", folder], *overlays)

world = World(*torch_wheels())
use = (world.python, "-c", "import torch\ntorch.zeros(1, device='cuda')")
folder = fake_driver(world, init=803, release="570.133.20")

# Chosen by LD_LIBRARY_PATH, as a copy beside the installed driver is: that can be mended by the user.
run = world.under_shim(*use)
run.fails_with("Error 803: system has unsupported display driver / cuda driver combination")
finding = run.said("cuda-device-unavailable", code=803, driver_release="570.133.20", kernel_module=has("570.86.15"))
assert "library 570.133.20, kernel module 570.86.15" in finding.title, finding.title
finding.proposes("unset LD_LIBRARY_PATH", first=True)
run.proposes_nothing_like("pip install", "reboot", "nvidia-driver")
assert "driver_package" not in finding.evidence, finding.evidence

# Updated by dpkg, as unattended-upgrades does it at night: what began before goes on, so the finding says since when nothing new begins.
system = Path(changed[0])
for file in folder.iterdir():
    shutil.copy(file, system, follow_symlinks=False)
del world.set["LD_LIBRARY_PATH"]
(Path(changed[1]) / "info/libnvidia-compute-570:amd64.list").write_text(f"/.\n{system}/libcuda.so.1\n{system}/libcuda.so.570.133.20\n")
with open(f"{changed[1]}/status", "a") as status:
    status.write("\nPackage: libnvidia-compute-570\nStatus: install ok installed\nArchitecture: amd64\nVersion: 570.133.20-0ubuntu1\n")
with open(f"{changed[2]}/dpkg.log", "a") as log:
    log.write("2026-11-30 06:12:33 upgrade libnvidia-compute-570:amd64 570.86.15-0ubuntu1 570.133.20-0ubuntu1\n"
              "2026-11-30 06:12:41 status installed libnvidia-compute-570:amd64 570.133.20-0ubuntu1\n")
run = world.under_shim(*use)
finding = run.said("cuda-device-unavailable", code=803, driver=has("x86_64-linux-gnu/libcuda.so"), driver_package="libnvidia-compute-570 570.133.20-0ubuntu1",
                   driver_package_since="2026-11-30 06:12:33", driver_package_before="570.86.15-0ubuntu1")
# Where the machine is a container itself, the package is one that does not belong into it.
finding.proposes("sudo reboot" if finding.evidence["container"] == "none seen" else "a driver package inside the image is to be removed", first=True)
