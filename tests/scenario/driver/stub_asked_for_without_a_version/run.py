"""numba asks for libcuda.so before libcuda.so.1, and the toolkit's stub bears the first name alone: no link was made for it."""
from cudiag_scenario import *
from broken import stub_first_on_the_library_path

world = World()
stubs = stub_first_on_the_library_path(world)
(stubs / "libcuda.so.1").unlink()
init = world.write("init.py", """
import ctypes
for name in ("libcuda.so", "libcuda.so.1"):
    try:
        driver = ctypes.CDLL(name)
        break
    except OSError:
        pass
error = driver.cuInit(0)
if error: raise RuntimeError(f"[{error}] Call to cuInit results in UNKNOWN_CUDA_ERROR")
""")

run = world.under_shim(world.python, init)
run.fails_with("RuntimeError: [34] Call to cuInit", status=1)

finding = run.said("loader-stub-driver", path=stubs / "libcuda.so", asked="libcuda.so", why=has("LD_LIBRARY_PATH"))
finding.proposes("LD_LIBRARY_PATH", first=True)
run.proposes_nothing_like("pip install", r"ln -s")
