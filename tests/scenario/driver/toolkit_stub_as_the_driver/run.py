"""The toolkit's stub, meant for ld at build time, stands first on LD_LIBRARY_PATH under the driver's name. The program asks the
driver itself, as numba does."""
from cudiag_scenario import *
from broken import stub_first_on_the_library_path

world = World()
stubs = stub_first_on_the_library_path(world)
init = world.write("init.py", """
import ctypes, sys
error = ctypes.CDLL("libcuda.so.1").cuInit(0)
if error: raise RuntimeError(f"[{error}] Call to cuInit results in CUDA_ERROR_STUB_LIBRARY")
""")

run = world.under_shim(world.python, init)
run.fails_with("RuntimeError: [34] Call to cuInit")

finding = run.said("loader-stub-driver", path=has(str(stubs)), why=has("LD_LIBRARY_PATH"))
finding.proposes("LD_LIBRARY_PATH", first=True)
run.proposes_nothing_like("pip install")

# Without the stub there is no driver here: that is another finding.
finding.apply("LD_LIBRARY_PATH")
run = world.under_shim(world.python, init)
run.fails_with("libcuda.so.1: cannot open shared object file").did_not_say("loader-stub-driver")
run.said("loader-missing-driver")
