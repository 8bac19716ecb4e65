"""ulimit -f is smaller than a record. No SIGXFSZ: the program is not disturbed."""
from cudiag_scenario import *
from broken import fused_without_cudart

world, fused = fused_without_cudart()
run = world.under_shim(world.python, "-c", f"import ctypes; ctypes.CDLL('{fused}')",
                       preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096)))
run.fails_with("libcudart.so.11.0: cannot open shared object file", status=1)
