"""A library was built on a newer system: it wants a version of glibc that does not exist here."""
from cudiag_scenario import *
from broken import needs_glibc_2_99

world = World()
library = needs_glibc_2_99(world, "venv/lib/libnew.so")
run = world.under_shim(world.python, "-c", f"import ctypes; ctypes.CDLL('{library}')")
run.fails_with("version `GLIBC_2.99' not found")

finding = run.said("loader-glibc-too-old", file=library, wanted="GLIBC_2.99", present=platform.libc_ver()[1])
run.proposes_nothing_like("LD_LIBRARY_PATH", r"apt (install|upgrade)", r"libc6")
