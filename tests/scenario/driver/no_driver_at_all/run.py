"""The program asks for the driver's library on a machine that has no NVIDIA driver."""
from cudiag_scenario import *

world = World()
if world.alone(world.python, "-c", "import ctypes; ctypes.CDLL('libcuda.so.1')")[0] == 0:
    raise CannotRun("this machine has a CUDA driver")

run = world.under_shim(world.python, "-c", "import ctypes\nctypes.CDLL('libcuda.so.1')")
run.fails_with("OSError: libcuda.so.1: cannot open shared object file: No such file or directory")

finding = run.said("loader-missing-driver", library="libcuda.so.1")
assert isinstance(finding.evidence["device_nodes"], list)
run.did_not_say("loader-missing-library")
run.proposes_nothing_like("pip install", r"ln -s", r"stubs")
