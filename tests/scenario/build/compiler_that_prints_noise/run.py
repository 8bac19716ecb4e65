"""A compiler's output that nobody can read: every byte there is, NUL and terminal sequences among them. The failure is its own."""
from cudiag_scenario import *

hide_toolkit(compiler=True)
world = World(*NVCC)
home = cuda_home(world)
noise = world.root / "noise"
noise.write_bytes(bytes(range(256)) * 64 + b"\x1b]0;title\x07 fatal error: \xff.h: No such file or directory\n" * 9)
noisy = world.write("bin/g++", f"#!/bin/sh\ncat {noise} >&2\nexit 1\n")
noisy.chmod(0o755)
fused = kernel(world)
nvcc = [f"{home}/bin/nvcc", "-ccbin", noisy, "-arch=sm_90", "-c", str(fused), "-o", str(world.root / "fused.o")]
build = world.write("jit.py", f"""import subprocess
done = subprocess.run({[str(word) for word in nvcc]!r}, stderr=subprocess.PIPE)
raise RuntimeError(f"Error building extension 'fused': exit status {{done.returncode}}\\n" + done.stderr.decode("latin-1"))
""")

world.under_shim(*nvcc).says_nothing(status=1)
world.under_shim(world.python, build).says_nothing(status=1)
