"""The library is installed, in the folder that all CUDA 13 wheels share; but the caller's RUNPATH names the toolkit of the
machine that built it. Installing it once more changes nothing."""
from cudiag_scenario import *

hide_toolkit()
world = World("nvidia-nvjitlink==13.0.88")
folder = world.site / "nvidia/cu13/lib"
built_at = "/usr/local/cuda-13.0/targets/x86_64-linux/lib"
caller = world.library("venv/lib/bitsandbytes/libbitsandbytes_cuda130.so",
                       "int nvJitLinkVersion(); int cquantize() { return nvJitLinkVersion(0, 0); }",
                       folder / "libnvJitLink.so.13", f"-Wl,-rpath,{built_at}")
load = [world.python, "-c", f"import ctypes; ctypes.CDLL('{caller}').cquantize"]

run = world.under_shim(*load)
run.fails_with("OSError: libnvJitLink.so.13: cannot open shared object file")

finding = run.said("loader-missing-library", library="libnvJitLink.so.13", needed_by=caller,
                   near_misses=has(str(folder / "libnvJitLink.so.13")))
finding.says(built_at, "RUNPATH")
finding.proposes(f"LD_LIBRARY_PATH={folder}", first=True, proved=True)
finding.does_not_propose("pip install")

finding.apply("LD_LIBRARY_PATH=")
world.under_shim(*load).is_silent()
