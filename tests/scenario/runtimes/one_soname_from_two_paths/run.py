"""One runtime of one version, mapped twice: by a library that NEEDs it, and then by another path. Equal versions do not help."""
from cudiag_scenario import *

world = World("nvidia-cuda-runtime-cu12==12.4.127")
wheels = world.site / "nvidia/cuda_runtime/lib/libcudart.so.12"
system = world.root / "opt/cuda/lib64/libcudart.so.12"
system.parent.mkdir(parents=True)
shutil.copy(wheels, system)
quantum = world.library("venv/lib/libquantum.so", "int cudaGetLastError(); int q() { return cudaGetLastError(); }", system,
                        f"-Wl,-rpath,{system.parent}")
train = world.write("train.py", f"""
import ctypes
ctypes.CDLL({str(quantum)!r}), ctypes.CDLL({str(wheels)!r})
raise RuntimeError("CUDA error: invalid resource handle")
""")

run = world.under_shim(world.python, train)
run.fails_with("RuntimeError: CUDA error: invalid resource handle")
finding = run.said("loader-two-runtimes", copies=has(str(quantum)))
finding.says(str(system), str(wheels))
