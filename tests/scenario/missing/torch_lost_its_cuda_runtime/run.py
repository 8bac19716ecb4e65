"""torch's own libcudart is gone; cuBLAS and the others come from a toolkit. torch then goes through its wheels for all of them,
and what the user sees is about libcublasLt, which is where it should be."""
from cudiag_scenario import *
from broken import toolkit_without_cudart

hide_toolkit()
world = World(*TORCH, pip_inside=True)
world.uninstall("nvidia-cuda-runtime")
toolkit = toolkit_without_cudart(world)
world.set["LD_LIBRARY_PATH"] = str(toolkit)

run = world.under_shim(world.python, "-c", "import torch")
run.fails_with("ValueError: libcublasLt.so.*[0-9] not found in the system path")

first = run.said("loader-missing-library", library="libcudart.so.13", needed_by=ends("/libtorch_global_deps.so"))
run.said("hidden-cause").says("libcublasLt.so", "libcudart.so.13")
first.causes("hidden-cause")
first.proposes(r"pip install .*nvidia-cuda-runtime==13\.", first=True)
run.proposes_nothing_like("cublas")

first.apply("nvidia-cuda-runtime")
world.under_shim(world.python, "-c", "import torch").is_silent()
