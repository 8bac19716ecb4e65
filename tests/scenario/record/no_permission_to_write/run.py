"""CUDIAG_DIR may not be written to. The program is not disturbed, and its failure is its own."""
from cudiag_scenario import *
from broken import fused_without_cudart

world, fused = fused_without_cudart()
runs = world.root / "closed"
runs.mkdir()
runs.chmod(0o555)
load = [world.python, "-c", f"import ctypes; ctypes.CDLL('{fused}')"]
run = world.under_shim(*load, runs=runs, preexec_fn=without_root_privileges)      # its twin: all that it says is there
run.fails_with("libcudart.so.11.0: cannot open shared object file", status=1)
assert run.files() == [], run.files()
world.under_shim(world.python, "-c", "print('well')", runs=runs, preexec_fn=without_root_privileges).is_silent()
