"""Optional libraries are probed all the time: by import, by ctypes, by find_library. None of that is a failure."""
from cudiag_scenario import *

world = World()
probe = world.write("probe.py", f"""
import ctypes, ctypes.util
for name in ("flash_attn", "apex", "xformers"):
    try: __import__(name)
    except ImportError as absent: print(absent)
for library in ("libcudart.so.99", "libnvidia-ml.so.1.absent", "/nowhere/libcufile.so.0"):
    try: ctypes.CDLL(library)
    except OSError as absent: print(absent)
print(ctypes.util.find_library("cudart-absent"))
try: ctypes.CDLL(None).cudaNoSuchFunction
except AttributeError as absent: print(absent)
""")
world.under_shim(world.python, probe).is_silent()
