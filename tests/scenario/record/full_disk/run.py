"""CUDIAG_DIR lies on a file system that is full. No SIGBUS, no half of a record: the program is not disturbed."""
from cudiag_scenario import *
from broken import fused_without_cudart

disk = mount_point("full")
in_mount_namespace(["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", disk])

world, fused = fused_without_cudart()
load = [world.python, "-c", f"import ctypes; ctypes.CDLL('{fused}')"]
for filled in (0, 40 << 10, 64 << 10):
    filler = disk / "filler"
    filler.write_bytes(b"x" * filled)
    run = world.under_shim(*load, runs=disk / "runs")
    run.fails_with("libcudart.so.11.0: cannot open shared object file", status=1)
    asked = world.cudiag("report", runs=disk / "runs")
    assert asked.status in (1, 3) and asked.stdout + asked.stderr, asked
    shutil.rmtree(disk / "runs", ignore_errors=True)
    filler.unlink()
