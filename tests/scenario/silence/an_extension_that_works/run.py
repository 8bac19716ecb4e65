"""An optional CUDA extension that loads, and runs."""
from cudiag_scenario import *

world = World("nvidia-cuda-runtime-cu12==12.4.127")
world.extension("fused_ops", ["cudaGetLastError"], world.site / "nvidia/cuda_runtime/lib/libcudart.so.12",
                "-Wl,-rpath,$ORIGIN/nvidia/cuda_runtime/lib")
world.under_shim(world.python, "-c", "import fused_ops; print(fused_ops.run())").is_silent()
