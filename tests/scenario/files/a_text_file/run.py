"""The library's name leads to a text: a pointer of Git LFS, as a clone without it leaves behind."""
from cudiag_scenario import *

world = World()
library = world.write("venv/lib/libfused.so", "version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 16387728\n")
run = world.under_shim(world.python, "-c", f"import ctypes; ctypes.CDLL('{library}')")
run.fails_with("invalid ELF header")
run.said("loader-wrong-architecture", file=library, problem="not ELF")
run.proposes_nothing_like("LD_LIBRARY_PATH")
