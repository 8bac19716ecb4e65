"""The extension wants CUDA 12's runtime; CUDA 13's is installed. It is named as a near miss, and is no substitute."""
from cudiag_scenario import *

hide_toolkit()
world = World("nvidia-cuda-runtime-cu12==12.4.127", "nvidia-cuda-runtime==13.0.96")
extension = world.extension("fused_ops", ["cudaGetLastError"], world.site / "nvidia/cuda_runtime/lib/libcudart.so.12")
world.uninstall("nvidia-cuda-runtime-cu12")

run = world.under_shim(world.python, "-c", "import fused_ops")
run.fails_with("libcudart.so.12: cannot open shared object file")

finding = run.said("loader-missing-library", library="libcudart.so.12", needed_by=extension,
                   near_misses=has(f"{world.site}/nvidia/cu13/lib/libcudart.so.13"))
finding.does_not_propose(r"ln -s", r"LD_LIBRARY_PATH=\S*/cu13/lib")
