"""A toolkit of wheels without the headers of the math libraries: named ahead, all of them, with one command."""
from cudiag_scenario import *

hide_toolkit_programs_and_headers()
world = World(*TORCH, *NVCC, pip_inside=True)
home = torch_world(world)
train, build = torch_build(world, "ATen/cuda/CUDAContext.h")

before = Diagnosis(world).answers_with(import_="green", build="red")
check = before.check("build-missing-header")
for header in ("cusparse.h", "cublas_v2.h", "cusolverDn.h"):
    assert header in check["text"], check
assert f"the toolkit at {home} has nvcc, but not the development files" in check["text"], check
assert check["finding"]["evidence"]["included_by"].rpartition(":")[0].endswith("ATen/cuda/CUDAContextLight.h"), check
status, _, stderr = world.alone(*train)
assert status == 1 and "fatal error: cusparse.h: No such file or directory" in stderr, stderr

before.apply("build-missing-header", "pip install")
Diagnosis(world).answers_with(import_="green", build="green", load="green")
assert world.alone(*train)[0] == 0
