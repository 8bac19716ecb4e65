"""Two CUDA runtimes of different majors are mapped in a process that fails: handles of one mean nothing to the other."""
from cudiag_scenario import *

world = World("nvidia-cuda-runtime-cu12==12.4.127", "nvidia-cuda-runtime==13.0.96")
older, newer = world.site / "nvidia/cuda_runtime/lib/libcudart.so.12", world.site / "nvidia/cu13/lib/libcudart.so.13"
train = world.write("train.py", f"""
import ctypes, sys
ctypes.CDLL({str(older)!r}), ctypes.CDLL({str(newer)!r})
if "fails" in sys.argv: raise RuntimeError("CUDA error: invalid resource handle")
""")
world.under_shim(world.python, train).is_silent()      # by itself no failure: many processes live with two

run = world.under_shim(world.python, train, "fails")
run.fails_with("RuntimeError: CUDA error: invalid resource handle")
finding = run.said("loader-two-runtimes")
finding.says(str(older), str(newer), "12.4.127", "13.0.96")
for copy in finding.evidence["copies"]:
    assert copy["inode"], copy
