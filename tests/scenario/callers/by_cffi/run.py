"""One missing library, reported whoever asks for it: by cffi."""
from cudiag_scenario import *
from broken import fused_without_cudart

world, fused = fused_without_cudart("cffi==2.0.0", "pycparser==2.23")
run = world.under_shim(world.python, "-c", f"import cffi; cffi.FFI().dlopen('{fused}')")
run.fails_with("libcudart.so.11.0: cannot open shared object file")
run.said("loader-missing-library", library="libcudart.so.11.0", needed_by=fused)
