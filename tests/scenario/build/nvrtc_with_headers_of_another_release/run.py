"""CuPy's way: the compiler is a library in our own process, and there is no child. NVRTC 12.9 reads headers of 12.1, by CUDA_PATH."""
from cudiag_scenario import *

world = World("nvidia-cuda-nvrtc-cu12==12.9.86", "nvidia-cuda-runtime-cu12==12.1.105")
runtime = world.site / "nvidia/cuda_runtime"
world.set["CUDA_PATH"] = str(runtime)
compile_it = nvrtc_program(world, '#include <cuda_fp8.h>\nextern "C" __global__ void f(__nv_fp8_e8m0* x) { x[0] = __nv_fp8_e8m0(1.0f); }\n',
                           'b"-I" + os.environ["CUDA_PATH"].encode() + b"/include"')

run = world.under_shim(world.python, compile_it)
run.fails_with("__nv_fp8_e8m0", status=1)

finding = run.said("build-nvrtc-failed", nvrtc=ends("libnvrtc.so.12"), nvrtc_release="12.9", variable=has("CUDA_PATH"),
                   include_directories=has("12.1"), log=has("__nv_fp8_e8m0"))
finding.says(str(runtime))

world.uninstall("nvidia-cuda-runtime-cu12")
world.add("nvidia-cuda-runtime-cu12==12.9.79")
world.under_shim(world.python, compile_it).is_silent()
