"""A copy of a library was not completed: the disk was full, or the download was broken off."""
from cudiag_scenario import *

world = World()
library = world.library("venv/lib/libfused.so", "int fused() { return 0; }")
load = [world.python, "-c", f"import ctypes; ctypes.CDLL('{library}')"]
whole = library.read_bytes()

for kept, text in (50, "file too short"), (200, "cannot read file data"):
    library.unlink()
    library.write_bytes(whole[:kept])
    run = world.under_shim(*load)
    run.fails_with(text)
    run.said("loader-wrong-architecture", file=library, problem="truncated")

library.write_bytes(whole)
world.under_shim(*load).is_silent()
