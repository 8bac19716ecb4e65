"""A package like apex: it was built with its CUDA extension, its __init__ catches the ImportError, and the advice that its
users see ("rebuild it") is false."""
from cudiag_scenario import *

world = World("nvidia-cuda-runtime-cu11==11.8.89", pip_inside=True)
cudart = world.site / "nvidia/cuda_runtime/lib/libcudart.so.11.0"
extension = world.extension("amp_C", ["cudaGetLastError"], cudart, "-Wl,-rpath,$ORIGIN/nvidia/cuda_runtime/lib")
world.uninstall("nvidia-cuda-runtime-cu11")
world.package("apexlike", """
try:
    import amp_C
    available = True
except ImportError:
    available = False
class FusedAdam:
    def __init__(self, parameters):
        if not available:
            raise RuntimeError("apexlike.FusedAdam requires cuda extensions: reinstall with --cuda_ext")
""")
train = world.write("train.py", "import apexlike\noptimizer = apexlike.FusedAdam([])\n")

run = world.under_shim(world.python, train)
run.fails_with("RuntimeError: apexlike.FusedAdam requires cuda extensions: reinstall with --cuda_ext")

first = run.said("loader-missing-library", library="libcudart.so.11.0", needed_by=extension)
hidden = run.said("hidden-cause")
hidden.says("requires cuda extensions", "libcudart.so.11.0")
first.causes("hidden-cause")
first.proposes(r"pip install .*nvidia-cuda-runtime-cu11\b", first=True)
run.proposes_nothing_like("--cuda_ext", r"rebuild apex")

first.apply("pip install")
world.under_shim(world.python, train).is_silent()
