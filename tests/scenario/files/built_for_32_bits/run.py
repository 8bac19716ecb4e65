"""A 32-bit library stands under the name that a 64-bit process asks for."""
from cudiag_scenario import *

world = World()
if platform.machine() != "x86_64":
    raise CannotRun("gcc makes 32-bit libraries by -m32 on x86-64 only")
library = world.library("venv/lib/libfused.so", "int fused() { return 0; }", "-m32", "-nostdlib")

run = world.under_shim(world.python, "-c", f"import ctypes; ctypes.CDLL('{library}')")
run.fails_with("wrong ELF class: ELFCLASS32")
run.said("loader-wrong-architecture", file=library, problem="machine").says("32-bit")
