"""A library that is there is broken; the script catches the error, says nothing of it and ends well. It is told, once, as a
warning: at the end of a short script, and while a long-lived one still runs."""
from cudiag_scenario import *
from broken import fused_without_cudart

world, fused = fused_without_cudart()
script = world.write("serve.py", f"""
import ctypes, glob, os, sys, time
try: ctypes.CDLL({str(fused)!r})
except OSError: pass
deadline = time.monotonic() + 120
while "long" in sys.argv and "CUDIAG_DIR" in os.environ and time.monotonic() < deadline:
    time.sleep(0.2)
    if any(open(f).read() for f in glob.glob(os.environ["CUDIAG_DIR"] + "/*/printed")): break
else:
    sys.exit("long" in sys.argv and "CUDIAG_DIR" in os.environ)
time.sleep(1)
""")
for life in ("short", "long"):
    run = world.under_shim(world.python, script, life)
    assert run.status == 0 and run.stderr.count("libcudart.so.11.0, needed by libfused.so") == 1, run
    finding = run.said("loader-missing-library", library="libcudart.so.11.0", needed_by=fused)
    assert finding.json["severity"] == "warning", finding.json["severity"]
