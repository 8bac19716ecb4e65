"""One missing library, reported whoever asks for it: a child of the script. Only the script prints."""
from cudiag_scenario import *
from broken import fused_without_cudart

world, fused = fused_without_cudart()
child = world.write("child.py", f"import ctypes; ctypes.CDLL({str(fused)!r})\n")
parent = world.write("parent.py", f"""
import subprocess, sys
done = subprocess.run([sys.executable, {str(child)!r}], stderr=subprocess.PIPE, text=True)
print("what the child wrote:", done.stderr)
done.check_returncode()
""")
run = world.under_shim(world.python, parent)
run.fails_with("CalledProcessError")
assert "cudiag" not in run.stdout, "the child printed into a pipe that its parent parses"
finding = run.said("loader-missing-library", library="libcudart.so.11.0", needed_by=fused)
assert finding.json["argv"][-1] == str(child), finding.json["argv"]
