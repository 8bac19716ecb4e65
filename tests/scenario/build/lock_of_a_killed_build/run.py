"""A job was killed in the midst of its build. Every later one waits for its lock, for ever and without a word."""
from cudiag_scenario import *

need_program("ninja")
world = World()
jit = baton(world)
build = world.write("build/build.ninja", "rule wait\n  command = touch started && sleep 100\nbuild fused.so: wait\n").parent
lock = build / "lock"

job = subprocess.Popen([world.python, jit, build], env=world.variables(), start_new_session=True)
while not (build / "started").exists():
    time.sleep(0.05)
os.killpg(job.pid, signal.SIGKILL)
job.wait()
world.write("build/build.ninja", "rule touch\n  command = touch $out\nbuild fused.so: touch\n")

waiting = world.begin_under_shim(world.python, jit, build).hangs(2)
waiting.shows(str(lock), within_s=8)
finding = waiting.so_far().said("build-stale-lock", lock=lock, build_directory=build, holders=[])
assert finding.evidence["age_s"] >= 2, describe(finding.json)
finding.proposes(rf"rm (-f )?{re.escape(str(lock))}$", first=True)
finding.does_not_propose(r"rm -r", r"\bkill\b")

finding.apply("rm")
waiting.ends(within_s=5)
world.under_shim(world.python, jit, build).is_silent()
