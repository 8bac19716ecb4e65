"""conda has its libraries in lib, and the link line says lib64. All is installed, one directory away."""
from cudiag_scenario import *

hide_toolkit(compiler=True)
world = World(*NVCC)
home = cuda_home(world)
(home / "lib64").unlink()
build = ninja_build(world, kernel(world))

run = world.under_shim("ninja", "-j1", "-C", build, fresh=build)
run.fails_with("cannot find -lcudart", status=1)

finding = run.said("build-link-failed", library="cudart", searched=has(f"{home}/lib64"), present=has(f"{home}/lib/libcudart.so"))
finding.proposes(rf"LIBRARY_PATH=.*{re.escape(str(home))}/lib\b|ln -s .*lib64", first=True)
run.proposes_nothing_like("cuda-cudart-dev", "install", r"cp ")

finding.apply()
world.under_shim("ninja", "-j1", "-C", build, fresh=build).is_silent()
