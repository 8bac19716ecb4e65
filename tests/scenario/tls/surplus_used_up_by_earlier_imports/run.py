"""Libraries with initial-exec thread-locals share a small surplus that glibc sets aside at start. The one that is loaded last
is the victim, not the culprit; a tunable of the right size cures it, and so does another order."""
from cudiag_scenario import *

world = World()
def initial_exec(name, size):
    return world.library(f"venv/lib/{name}", f"__thread char block[{size}]; char* get() {{ return block; }}",
                         "-ftls-model=initial-exec")
allocator, gomp, small = initial_exec("liballocator.so", 1000), initial_exec("libgomp-like.so", 1200), initial_exec("libsmall.so", 64)
load = world.write("load.py", "import ctypes, sys\nfor path in sys.argv[1:]: ctypes.CDLL(path)\n")
world.under_shim(world.python, load, small, gomp).is_silent()

run = world.under_shim(world.python, load, allocator, gomp)
run.fails_with("cannot allocate memory in static TLS block")

finding = run.said("loader-static-tls", library=gomp, tls_bytes=1200, users_in_load_order=has(str(allocator)))
assert {"path": str(allocator), "tls_bytes": 1000} in [
    {k: user[k] for k in ("path", "tls_bytes")} for user in finding.evidence["users_in_load_order"]], finding.evidence
finding.proposes(r"GLIBC_TUNABLES=glibc\.rtld\.optional_static_tls=\d+", first=True)
run.proposes_nothing_like("pip install", "LD_LIBRARY_PATH")

finding.apply("GLIBC_TUNABLES")
world.under_shim(world.python, load, allocator, gomp).is_silent()
