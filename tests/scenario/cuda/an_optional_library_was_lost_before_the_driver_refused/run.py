"""As CuPy does without cuTENSOR: an extension that lacks its library is passed over, and then the driver shows no GPU. The program
failed of the second; the first is worth a note."""
from cudiag_scenario import *
from broken import fused_without_cudart

world, fused = fused_without_cudart("nvidia-cuda-runtime==13.0.96")
fake_driver(world, init=100, release="580.65.06")
program = world.write("use.py", f"""
import ctypes
try: ctypes.CDLL("{fused}")
except OSError: pass
cudart = ctypes.CDLL("{world.site}/nvidia/cu13/lib/libcudart.so.13")
cudart.cudaGetErrorName.restype = cudart.cudaGetErrorString.restype = ctypes.c_char_p
error = cudart.cudaGetDeviceCount(ctypes.byref(ctypes.c_int()))
if error: raise RuntimeError(f"{{cudart.cudaGetErrorName(error).decode()}}: {{cudart.cudaGetErrorString(error).decode()}}")
""")
run = world.under_shim(world.python, program)
run.fails_with("cudaErrorNoDevice: no CUDA-capable device is detected")
run.said("cuda-device-unavailable", code=100)
run.did_not_say("hidden-cause")
assert [f.json["severity"] for f in run.findings() if f.slug.startswith("loader-")] in ([], ["note"]), run.findings()
