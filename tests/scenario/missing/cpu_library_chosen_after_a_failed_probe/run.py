"""The real libraries of bitsandbytes, chosen as its loader chooses them: the CUDA one cannot be loaded, the CPU one is taken
with a warning, and the user sees a symbol that no CPU build has ever had. Copying one file over the other, as the web
advises, hides the cause."""
from cudiag_scenario import *

hide_toolkit()
world = World("bitsandbytes==0.49.2")
folder = world.site / "bitsandbytes"
world.package("bitsandbytes", """
import ctypes, pathlib, warnings
here = pathlib.Path(__file__).parent
try:
    lib = ctypes.CDLL(str(here / "libbitsandbytes_cuda130.so"))
except OSError:
    warnings.warn("The installed version of bitsandbytes was compiled without GPU support.")
    lib = ctypes.CDLL(str(here / "libbitsandbytes_cpu.so"))
""")
quantize = world.write("quantize.py", "import bitsandbytes\nbitsandbytes.lib.cget_col_row_stats\n")

run = world.under_shim(world.python, quantize)
run.fails_with("undefined symbol: cget_col_row_stats")

first = run.said("loader-missing-library", library="libcudart.so.13", needed_by=folder / "libbitsandbytes_cuda130.so")
run.said("hidden-cause").says("cget_col_row_stats", "libcudart.so.13")
first.causes("hidden-cause")
first.proposes(r"nvidia-cuda-runtime==13\.")
run.proposes_nothing_like(r"\bcp\b", r"\bmv\b", r"ln -s")
