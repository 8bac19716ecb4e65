"""CUDA's runtime loads the stub, gets error 34 from it and unloads it again: at the end of the program no libcuda is mapped."""
from cudiag_scenario import *
from broken import stub_first_on_the_library_path

world = World("nvidia-cuda-runtime-cu12==12.4.127")
stubs = stub_first_on_the_library_path(world)
count = world.write("count.py", f"""
import ctypes
cudart = ctypes.CDLL({str(world.site / 'nvidia/cuda_runtime/lib/libcudart.so.12')!r})
error = cudart.cudaGetDeviceCount(ctypes.byref(ctypes.c_int()))
if error: raise RuntimeError(f"cudaGetDeviceCount: error {{error}}")
""")

run = world.under_shim(world.python, count)
run.fails_with("cudaGetDeviceCount: error 34")

finding = run.said("loader-stub-driver", path=has(str(stubs)), why=has("LD_LIBRARY_PATH"))
finding.proposes("LD_LIBRARY_PATH", first=True)

finding.apply("LD_LIBRARY_PATH")
world.under_shim(world.python, count).fails_with("cudaGetDeviceCount: error 35").did_not_say("loader-stub-driver")
