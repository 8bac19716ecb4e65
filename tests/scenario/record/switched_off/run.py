"""CUDIAG=off: the shim is loaded, and does nothing at all."""
from cudiag_scenario import *
from broken import fused_without_cudart

world, fused = fused_without_cudart()
world.under_shim(world.python, "-c", f"import ctypes; ctypes.CDLL('{fused}')", env={"CUDIAG": "off"}).is_silent(status=1)
run = world.under_shim(world.python, "-c", f"import ctypes; ctypes.CDLL('{fused}')", env={"CUDIAG_PRINT": "off"})
assert "cudiag" not in run.stderr, run
run.said("loader-missing-library", printed=False)
