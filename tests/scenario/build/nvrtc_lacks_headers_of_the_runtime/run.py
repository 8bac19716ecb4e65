"""cuda_fp16.h of CUDA 12.4 includes headers of the runtime, which a package with the fp16 headers alone does not carry."""
from cudiag_scenario import *

world = World("nvidia-cuda-nvrtc-cu12==12.4.127", pip_inside=True)
include = world.site / "cupy/_core/include"
include.mkdir(parents=True)
for name in ("cuda_fp16.h", "cuda_fp16.hpp"):
    shutil.copy(wheel("nvidia-cuda-runtime-cu12==12.4.127") / "nvidia/cuda_runtime/include" / name, include)
compile_it = nvrtc_program(world, '#include <cuda_fp16.h>\nextern "C" __global__ void f(__half* x) { x[0] = __float2half(1.0f); }\n',
                           f'b"-I{include}"', 'b"-I" + packages.encode() + b"/nvidia/cuda_runtime/include"')

run = world.under_shim(world.python, compile_it)
run.fails_with('cuda_fp16.h(129): catastrophic error: cannot open source file "vector_types.h"', status=1)

finding = run.said("build-nvrtc-failed", nvrtc=ends("libnvrtc.so.12"), nvrtc_release="12.4", include_directories=has(str(include)),
                   log=has("vector_types.h"))
finding.proposes(r"pip install .*nvidia-cuda-runtime-cu12==12\.4")
finding.apply("nvidia-cuda-runtime-cu12")
world.under_shim(world.python, compile_it).is_silent()
