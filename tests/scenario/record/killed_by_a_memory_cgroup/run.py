"""The whole job is in a small container: the kernel kills Python itself, and nothing is printed. Its parent knows of what."""
from cudiag_scenario import *

group = control_group("memory", 150 << 20)
world = World()
job = world.write("train.py", "weights = bytearray(1 << 30)\nprint('trained')\n")
world.under_shim(world.python, job).is_silent()     # where there is room

status, stdout, stderr = world.alone(world.python, job, preexec_fn=joins(group))
assert (status, stdout, stderr) == (-signal.SIGKILL, "", ""), (status, stdout, stderr)

asked = world.cudiag("run", "--", world.python, job, runs=world.root / "runs", preexec_fn=joins(group))
asked.ends_with(128 + signal.SIGKILL, "died by SIGKILL", "killed a process for memory in the cgroup", group.name, "limit 157 MB")
asked = world.cudiag("run", "--", "sh", "-c", "kill -KILL $$", runs=world.root / "runs", preexec_fn=joins(group))
asked.ends_with(128 + signal.SIGKILL, "died by SIGKILL")
assert "for memory" not in asked.stderr, asked
