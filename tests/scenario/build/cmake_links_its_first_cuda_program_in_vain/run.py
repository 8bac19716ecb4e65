"""CMake tries the compiler before anything else. nvcc says -L lib64 where the wheels have lib, and CMake says the compiler is broken."""
from cudiag_scenario import *

hide_toolkit(compiler=True)
need_program("cmake")
world = World(*NVCC)
home = cuda_home(world, links=False)
out, configure = cmake_build(world, kernel(world))

run = world.under_shim(*configure, fresh=out)
run.fails_with("cannot find -lcudart_static", status=1)

finding = run.said("build-link-failed", searched=has(f"{home}/"), present=has(f"{home}/lib/libcuda"), needed_by=has("a.out"))
finding.proposes(r"ln -s .*lib64|LIBRARY_PATH", first=True)
run.proposes_nothing_like("install")

finding.apply()
shutil.rmtree(out)
out.mkdir()
world.under_shim(*configure, fresh=out).is_silent()
