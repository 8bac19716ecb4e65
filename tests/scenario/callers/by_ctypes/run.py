"""One missing library, reported whoever asks for it: by ctypes."""
from cudiag_scenario import *
from broken import fused_without_cudart

world, fused = fused_without_cudart()
run = world.under_shim(world.python, "-c", f"import ctypes; ctypes.CDLL('{fused}')")
run.fails_with("OSError: libcudart.so.11.0: cannot open shared object file")
finding = run.said("loader-missing-library", library="libcudart.so.11.0", needed_by=fused)
assert finding.json["where"]["python"], "the Python line is not named"
