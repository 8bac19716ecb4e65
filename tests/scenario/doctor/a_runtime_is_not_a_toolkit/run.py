"""torch imports, and would see a GPU; nothing here can compile CUDA. The doctor says so in plain words, and what mends it."""
from cudiag_scenario import *

hide_toolkit_programs_and_headers(default_home=False)
world = World(*torch_wheels(), pip_inside=True)
torch_world(world, links=False)
world.set["CUDA_HOME"] = None
train, build = torch_build(world)

before = Diagnosis(world).answers_with(import_="green", build="red", load="green", launch="unknown")
assert "nothing here can compile CUDA: torch's wheels bring the CUDA 13.0 runtime, not a toolkit" in before.answers["build"]["text"], before
check = before.check("build-missing-compiler")
assert check["finding"]["evidence"]["program"] == "nvcc" and check["finding"]["evidence"]["copies"] == [], check
status, _, stderr = world.alone(*train)
assert status == 1 and "CUDA_HOME environment variable is not set" in stderr, stderr

before.apply("build-missing-compiler", "pip install")
# The compiler is there now. Who installs torch with all that it requires has the headers too; this world has not.
Diagnosis(world).answers_with(build="red").apply("build-missing-header", "pip install")
after = Diagnosis(world).answers_with(import_="green", build="green", load="green")
assert "13.0" in after.answers["build"]["text"], after
status, stdout, stderr = world.alone(*train)
assert status == 0 and "built and loaded" in stdout, stderr

shown = world.cudiag("doctor", "--python", world.python)
shown.ends_with(0, "import torch", "build CUDA extensions", "launch on a GPU", "not known")
assert "\033" not in shown.stdout, shown
