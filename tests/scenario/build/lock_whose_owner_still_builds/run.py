"""Another rank builds, and takes longer than most. Who waits for it waits rightly, whatever kind of lock it is."""
from cudiag_scenario import *

need_program("ninja")
world = World()
jit = baton(world)
build = world.write("build/build.ninja", "rule wait\n  command = sleep 8 && touch $out\nbuild fused.so: wait\n").parent
flock = world.write("flock.py", """import fcntl, sys
with open(sys.argv[1], "w") as lock: fcntl.flock(lock, fcntl.LOCK_EX)
print("loaded")
""")
held = world.write("cache/fused_adam/lock", "")

owner = subprocess.Popen([world.python, jit, build], env=world.variables(), stdout=subprocess.DEVNULL)
other = subprocess.Popen(["flock", held, "sleep", "8"])
while not (build / "lock").exists():
    time.sleep(0.05)

by_file = world.begin_under_shim(world.python, jit, build)
by_flock = world.begin_under_shim(world.python, flock, held).hangs(6)
by_file.hangs(0.1)
by_file.ends().is_silent()
by_flock.ends().is_silent()
