"""libcufile.so.0 has one name under CUDA 11, 12 and 13. The wheel for torch's own CUDA is proposed, and lands where torch looks."""
from cudiag_scenario import *

world = World(*torch_wheels(), pip_inside=True)
world.uninstall("nvidia-cufile")

run = world.under_shim(world.python, "-c", "import torch")
run.fails_with("ImportError: libcufile.so.0: cannot open shared object file: No such file or directory", status=1)

finding = run.said("loader-missing-library", library="libcufile.so.0", needed_by=ends("/torch/lib/libtorch_python.so"),
                   torch="2.13.0")
finding.proposes(r"pip install '?nvidia-cufile==[^&]*$", first=True)
finding.does_not_propose("cufile-cu12", "libcufile-1[12]", "cuda:1[12]", "LD_LIBRARY_PATH")

finding.apply("pip install")
world.under_shim(world.python, "-c", "import torch; print(torch.__version__)").is_silent()
