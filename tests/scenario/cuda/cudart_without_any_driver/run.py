"""The CUDA runtimes of 11.8, 12.9 and 13.0 where no driver is: each says "insufficient", and means that there is none."""
from cudiag_scenario import *

no_real_driver()
RUNTIMES = {"11.8": ("nvidia-cuda-runtime-cu11==11.8.89", "nvidia/cuda_runtime/lib/libcudart.so.11.0"),
            "12.9": ("nvidia-cuda-runtime-cu12==12.9.79", "nvidia/cuda_runtime/lib/libcudart.so.12"),
            "13.0": ("nvidia-cuda-runtime==13.0.96", "nvidia/cu13/lib/libcudart.so.13")}

for release, (requirement, library) in RUNTIMES.items():
    world = World(requirement)
    program = world.write("count.py", f"""
import ctypes
cudart = ctypes.CDLL("{world.site / library}")
cudart.cudaGetErrorName.restype = cudart.cudaGetErrorString.restype = ctypes.c_char_p
error = cudart.cudaGetDeviceCount(ctypes.byref(ctypes.c_int()))
if error: raise RuntimeError(f"{{cudart.cudaGetErrorName(error).decode()}}: {{cudart.cudaGetErrorString(error).decode()}}")
""")
    run = world.under_shim(world.python, program)
    run.fails_with("cudaErrorInsufficientDriver: CUDA driver version is insufficient for CUDA runtime version")
    finding = run.said("cuda-no-driver", code=35, code_name="cudaErrorInsufficientDriver", runtime=ends(library),
                       runtime_cuda=release)
    run.did_not_say("cuda-driver-too-old", "loader-missing-driver")
    run.proposes_nothing_like("pip install", "(?i)cuda.toolkit", "[Uu]pgrade the")

    # Too old a driver gives the very same words, and is another matter. (For 11.8 it would be one of CUDA 10, of which the
    # double is not enough.)
    if release == "11.8":
        continue
    version, old, minimum = {"12.9": (11040, "470.57.02", "525.60.13"), "13.0": (12040, "550.54.14", "580.65.06")}[release]
    fake_driver(world, version=version, release=old)
    run = world.under_shim(world.python, program)
    run.fails_with("cudaErrorInsufficientDriver")
    finding = run.said("cuda-driver-too-old", driver_release=old, driver_cuda=f"{version // 1000}.{version % 1000 // 10}",
                       minimum=minimum, runtime_cuda=release)
    finding.proposes(rf"branch {minimum[:3]} or newer", first=True)
    finding.does_not_propose("pip install", "(?i)cuda.toolkit")
    run.did_not_say("cuda-no-driver")
