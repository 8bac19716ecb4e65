"""An extension was linked to CUDA 11's runtime, and the wheel that brought it has been taken away."""
from cudiag_scenario import *

world = World("nvidia-cuda-runtime-cu11==11.8.89", pip_inside=True)
cudart = world.site / "nvidia/cuda_runtime/lib/libcudart.so.11.0"
extension = world.extension("fused_ops", ["cudaGetLastError"], cudart, "-Wl,-rpath,$ORIGIN/nvidia/cuda_runtime/lib")
world.uninstall("nvidia-cuda-runtime-cu11")

run = world.under_shim(world.python, "-c", "import fused_ops")
run.fails_with("ImportError: libcudart.so.11.0: cannot open shared object file: No such file or directory")

finding = run.said("loader-missing-library", library="libcudart.so.11.0", needed_by=extension, chain=has(str(extension)))
finding.says(f"{world.site}/nvidia/cuda_runtime/lib", "RUNPATH")
finding.proposes(r"pip install .*nvidia-cuda-runtime-cu11\b", first=True)
finding.does_not_propose("nvidia-cuda-runtime-cu12", r"ln -s")

finding.apply("pip install")
world.under_shim(world.python, "-c", "import fused_ops; fused_ops.run()").is_silent()
