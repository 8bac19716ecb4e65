"""A forum's advice made a wrapper of ninja that prints a version. It ends with 0, nothing is compiled, and the load finds no file."""
from cudiag_scenario import *

need_program("ninja")
world = World()
world.activate()
fake = world.write("venv/bin/ninja", "#!/bin/sh\necho 1.11.1\n")
fake.chmod(0o755)
build = ninja_build(world, "none.cu")
load = world.write("load.py", f"""
import ctypes, subprocess
subprocess.run(["ninja", "-v"], cwd={str(build)!r}, check=True, stdout=subprocess.PIPE)
ctypes.CDLL({str(build / "fused.so")!r})
""")

run = world.under_shim(world.python, load)
run.fails_with("fused.so: cannot open shared object file: No such file or directory", status=1)

finding = run.said("build-nothing-built", ninja=fake, argv=has("-v"), output=build / "fused.so")
run.did_not_say("loader-missing-library", "build-missing-header")
run.proposes_nothing_like("rm -r", "pip install .*fused")
