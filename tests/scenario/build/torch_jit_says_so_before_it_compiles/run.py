"""The C++ half of an extension compiles for a while before ninja comes to the kernel, whose nvcc is not there: known at once, and said."""
from cudiag_scenario import *

world = World(*torch_wheels(), *NVCC)
home = torch_world(world)
gone = world.root / "opt/cuda-12.4"
world.set |= {"CUDA_HOME": str(gone), "PATH": f"{home}/bin:{world.set['PATH']}"}
first = world.write("csrc/frontend.cpp", table(4000))
fused = kernel(world)
(world.root / "extensions").mkdir()
script = world.write("finetune.py", f"""from torch.utils.cpp_extension import load
load("fused", [{str(first)!r}, {str(fused)!r}], is_python_module=False)
""")

building = world.begin_under_shim(world.python, script)
building.shows("cudiag: error build-missing-compiler", within_s=60)
frontend = world.root / "extensions/fused/frontend.o"
assert building.so_far() is not None and not frontend.exists(), "said when the C++ half was compiled already"
finding = building.so_far().said("build-missing-compiler", asked=f"{gone}/bin/nvcc", build_file=ends("extensions/fused/build.ninja"))
finding.proposes(f"export CUDA_HOME={re.escape(str(home))}", first=True)
ended = building.ends()
assert ended.status == 1 and ended.stderr.count("cudiag: error build-missing-compiler") == 1, ended
