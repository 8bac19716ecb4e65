"""The real bitsandbytes 0.49.2 with every CUDA 13 wheel that it needs: all are installed, in one folder, and the RUNPATH that
its authors' machine left in it leads elsewhere."""
from cudiag_scenario import *

hide_toolkit()
world = World("bitsandbytes==0.49.2", "nvidia-cuda-runtime==13.0.96", *TORCH_TOOLKIT)
folder = world.site / "nvidia/cu13/lib"
library = world.site / "bitsandbytes/libbitsandbytes_cuda130.so"
load = [world.python, "-c", f"import ctypes; ctypes.CDLL('{library}').cquantize_blockwise_fp32"]

run = world.under_shim(*load)
run.fails_with("OSError: libcudart.so.13: cannot open shared object file")

finding = run.said("loader-missing-library", library="libcudart.so.13", needed_by=library,
                   near_misses=has(str(folder / "libcudart.so.13")))
finding.says("/usr/local/cuda-13.0/targets/x86_64-linux/lib", "bitsandbytes 0.49.2")
finding.proposes(f"LD_LIBRARY_PATH={folder}", first=True, proved=True)
finding.does_not_propose("pip install .*nvidia")

finding.apply("LD_LIBRARY_PATH=")
world.under_shim(*load).is_silent()
