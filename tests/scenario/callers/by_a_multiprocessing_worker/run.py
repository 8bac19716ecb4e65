"""One missing library, reported whoever asks for it: workers of multiprocessing, forked and spawned."""
from cudiag_scenario import *
from broken import fused_without_cudart

world, fused = fused_without_cudart()
pool = world.write("pool.py", f"""
import ctypes, multiprocessing, sys
def work(path): ctypes.CDLL(path)
if __name__ == "__main__":
    with multiprocessing.get_context(sys.argv[1]).Pool(1) as workers:
        workers.map(work, [{str(fused)!r}])
""")
for how in ("fork", "spawn"):
    run = world.under_shim(world.python, pool, how)
    run.fails_with("OSError: libcudart.so.11.0: cannot open shared object file")
    finding = run.said("loader-missing-library", library="libcudart.so.11.0", needed_by=fused)
    assert len([f for f in run.findings() if f.slug == "loader-missing-library"]) == 1, "one cause, said twice"
