"""A library that is there is broken; the script catches the error, says nothing of it and ends well. It is told, once, as a
warning: at the end of a short script, and while a long-lived one still runs."""
from cudiag_scenario import *
from broken import fused_without_cudart

world, fused = fused_without_cudart()
script = world.write("serve.py", f"""
import ctypes, sys, time
try: ctypes.CDLL({str(fused)!r})
except OSError: pass
time.sleep(float(sys.argv[1]))
print("served", file=sys.stderr)
""")
for seconds in ("0", "5"):
    run = world.under_shim(world.python, script, seconds)
    assert run.status == 0 and run.stderr.count("libcudart.so.11.0, needed by libfused.so") == 1, run
    finding = run.said("loader-missing-library", library="libcudart.so.11.0", needed_by=fused)
    assert finding.json["severity"] == "warning", finding.json["severity"]
    told_while_it_ran = run.stderr.index("libcudart.so.11.0") < run.stderr.index("served")
    assert told_while_it_ran == (seconds == "5"), run
