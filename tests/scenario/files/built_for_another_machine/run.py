"""A wheel of another architecture was unpacked here: an AArch64 library on an x86-64 machine."""
from cudiag_scenario import *

cross = need_program("aarch64-linux-gnu-gcc" if platform.machine() == "x86_64" else "x86_64-linux-gnu-gcc")
world = World()
library = world.library("venv/lib/libfused.so", "int fused() { return 0; }", "-nostdlib", compiler=cross)

run = world.under_shim(world.python, "-c", f"import ctypes; ctypes.CDLL('{library}')")
run.fails_with("cannot open shared object file")

finding = run.said("loader-wrong-architecture", file=library, problem="machine")
finding.says("AArch64" if platform.machine() == "x86_64" else "x86-64")
run.did_not_say("loader-missing-library")
run.proposes_nothing_like(r"ln -s", "LD_LIBRARY_PATH")
