"""Probes open libc.so, which is a script for ld at build time, and go on to libc.so.6."""
from cudiag_scenario import *

script = subprocess.run(["gcc", "-print-file-name=libc.so"], capture_output=True, text=True).stdout.strip()
if not os.path.isfile(script) or "GNU ld script" not in open(script, errors="replace").read(200):
    raise CannotRun("libc.so is no linker script here")
world = World()
probe = world.write("probe.py", f"""
import ctypes
for name in ({script!r}, "libc.so.6"):
    try: library = ctypes.CDLL(name); break
    except OSError as error: print(error)
print(library.labs(-7))
""")
world.under_shim(world.python, probe).is_silent()
