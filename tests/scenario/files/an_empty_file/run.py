"""The library is there by name, and holds nothing."""
from cudiag_scenario import *

world = World()
library = world.write("venv/lib/libfused.so", "")
run = world.under_shim(world.python, "-c", f"import ctypes; ctypes.CDLL('{library}')")
run.fails_with("file too short")
run.said("loader-wrong-architecture", file=library, problem="empty")
