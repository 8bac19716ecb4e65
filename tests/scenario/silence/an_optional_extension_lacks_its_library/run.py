"""CuPy's way: an extension of the package itself needs a library that nobody installed (cuTENSOR); the import is tried, and works without."""
from cudiag_scenario import *

world = World()
gone = world.library("gone/libcutensor.so.2", "int cutensorCreate(void) { return 0; }\n", "-Wl,-soname,libcutensor.so.2")
world.extension("cutensor", ["cutensorCreate"], f"-L{gone.parent}", "-l:libcutensor.so.2", declares="int cutensorCreate(void);")
gone.unlink()
script = world.write("train.py", """import sys, time
try:
    import cutensor
except ImportError as error:
    cutensor = None
time.sleep(float(sys.argv[1]))
if len(sys.argv) > 2:
    raise RuntimeError(sys.argv[2])
print("trained without cutensor")
""")

world.under_shim(world.python, script, "0").is_silent()
world.under_shim(world.python, script, "3").is_silent()          # longer than it waits before it speaks of breakage
# An error of a GPU that ran is told as that, and the library is not laid to it.
run = world.under_shim(world.python, script, "0", "CUDA error: an illegal memory access was encountered")
run.said("cuda-async-error", code=700, call="not seen")
assert [finding.slug for finding in run.findings() if finding.json["severity"] != "note"] == ["cuda-async-error"], run.findings()
