"""The job is killed with SIGKILL just after a load has failed, and says nothing. The record tells it all the same."""
from cudiag_scenario import *
from broken import fused_without_cudart

world, fused = fused_without_cudart()
job = world.write("job.py", f"""
import ctypes, os, signal
try: ctypes.CDLL({str(fused)!r})
except OSError: os.kill(os.getpid(), signal.SIGKILL)
""")

run = world.under_shim(world.python, job)
run.was_killed_by(signal.SIGKILL)
assert "cudiag" not in run.stdout + run.stderr, run

told = world.cudiag("report", "--last", "--json", runs=run.runs)
findings = {f["slug"]: f for f in json.loads(told.stdout)["findings"]}
assert findings["loader-missing-library"]["evidence"]["library"] == "libcudart.so.11.0", told
world.cudiag("report", "--last", runs=run.runs).ends_with(1, "libcudart.so.11.0", str(fused))
run.said("process-killed", printed=False).says("killed by a signal")      # which, its parent knows

watched = world.cudiag("run", "--", world.python, job, runs=world.root / "watched")
watched.ends_with(128 + signal.SIGKILL, "libcudart.so.11.0", "SIGKILL")
