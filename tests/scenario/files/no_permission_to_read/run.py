"""The library belongs to somebody else and may not be read."""
from cudiag_scenario import *

world = World()
library = world.library("venv/lib/libfused.so", "int fused() { return 0; }")
library.chmod(0)
load = [world.python, "-c", f"import ctypes; ctypes.CDLL('{library}')"]

run = world.under_shim(*load, preexec_fn=without_root_privileges)
run.fails_with("Permission denied")
finding = run.said("loader-wrong-architecture", file=library, problem="permission")
finding.proposes(r"chmod a\+r", first=True)
run.did_not_say("loader-missing-library")

finding.apply("chmod")
world.under_shim(*load, preexec_fn=without_root_privileges).is_silent()
