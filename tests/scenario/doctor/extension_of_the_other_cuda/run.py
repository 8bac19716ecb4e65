"""torchvision's wheel is of CUDA 12, torch's of CUDA 13: torch imports, and what torchvision has compiled cannot be loaded."""
from cudiag_scenario import *

hide_toolkit_programs_and_headers(default_home=False)
world = World(*torch_wheels(), "torchvision==0.24.1", "pillow")
world.activate()
diagnosis = Diagnosis(world).answers_with(import_="green", load="red")
check = diagnosis.check("loader-missing-library")
assert check["finding"]["evidence"]["library"] == "libcudart.so.12", check
assert check["text"].startswith("torchvision 0.24.1: "), check

loads = "import ctypes, glob, torch; ctypes.CDLL(glob.glob(torch.__path__[0] + '/../torchvision/_C*.so')[0])"
status, _, stderr = world.alone(world.python, "-c", loads)
assert status == 1 and "libcudart.so.12: cannot open shared object file" in stderr, stderr
