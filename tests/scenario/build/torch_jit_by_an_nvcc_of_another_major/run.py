"""torch is of CUDA 12.8, nvcc of 13.0, and torch's JIT does not ask: it builds, loads, and has two CUDA runtimes in one process.
By itself that is no failure; once the program fails, it is worth a word."""
from cudiag_scenario import *

no_real_driver()
world = World(*torch_cu12_wheels(), *NVCC)
home = torch_world(world)
world.set["LD_LIBRARY_PATH"] = f"{home}/lib64"      # as people set it for a toolkit
train, build = torch_build(world)
use = world.write("use.py", f"""import ctypes, runpy
runpy.run_path({str(train[1])!r})
status = ctypes.CDLL({str(build / "fused.so")!r}).fused_scale(None, ctypes.c_float(2), 1)
words = ctypes.CDLL("libcudart.so.13").cudaGetErrorString
words.restype = ctypes.c_char_p
if status != 0:
    raise RuntimeError("CUDA error: " + words(status).decode())
""")

world.under_shim(*train, fresh=build.parent).is_silent()

run = world.under_shim(world.python, use, fresh=build.parent)
run.fails_with("RuntimeError: CUDA error: CUDA driver version is insufficient for CUDA runtime version", status=1)
run.said("cuda-no-driver", runtime=ends("libcudart.so.13"))      # what it really failed of, and what may bite where a driver is
finding = run.said("loader-two-runtimes", library="cudart")
finding.says("12.8.90", "13.0.96", "libc10_cuda.so", build / "fused.so")
assert finding.json["severity"] == "warning", describe(finding.json)
run.did_not_say("build-toolkit-mismatch")
