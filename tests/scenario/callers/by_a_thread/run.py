"""One missing library, reported whoever asks for it: a worker thread, whose error the main thread raises."""
from cudiag_scenario import *
from broken import fused_without_cudart

world, fused = fused_without_cudart()
loader = world.write("loader.py", f"""
import ctypes, threading
errors = []
def load():
    try: ctypes.CDLL({str(fused)!r})
    except OSError as error: errors.append(error)
worker = threading.Thread(target=load)
worker.start()
worker.join()
raise errors[0]
""")
run = world.under_shim(world.python, loader)
run.fails_with("OSError: libcudart.so.11.0: cannot open shared object file")
finding = run.said("loader-missing-library", library="libcudart.so.11.0", needed_by=fused)
assert finding.json["tid"] != finding.json["pid"], "the thread is not named"
