"""All ranks of a node wait for one lock that nobody holds. That is said once, and the job is not ended by it."""
from cudiag_scenario import *

world = World()
jit = baton(world)
build = world.write("build/build.ninja", "rule touch\n  command = touch $out\nbuild fused.so: touch\n").parent
lock = world.write("build/lock", "")
launcher = world.write("launch.py", f"""
import subprocess, sys
ranks = [subprocess.Popen([sys.executable, {str(jit)!r}, {str(build)!r}]) for _ in range(3)]
sys.exit(max(rank.wait() for rank in ranks))
""")

waiting = world.begin_under_shim(world.python, launcher).hangs(2)
waiting.shows(str(lock), within_s=8).hangs(2)
finding = waiting.so_far().said("build-stale-lock", lock=lock, holders=[])
finding.apply("rm")
run = waiting.ends(within_s=5)
assert run.status == 0 and run.stderr.count("cudiag: error build-stale-lock") == 1, run
