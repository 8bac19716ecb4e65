"""torchvision 0.24.1 was built for CUDA 12, torch 2.13.0 for CUDA 13. The user is told of an operator that does not exist."""
from cudiag_scenario import *

world = World(*torch_wheels(), "torchvision==0.24.1", "pillow", pip_inside=True)
finetune = [world.python, "-c", "import torchvision; torchvision.ops.nms"]

run = world.under_shim(*finetune)
run.fails_with("RuntimeError: operator torchvision::nms does not exist")

first = run.said("loader-missing-library", library="libcudart.so.12", needed_by=world.site / "torchvision/_C.so",
                 near_misses=has("libcudart.so.13"))
run.said("hidden-cause").says("operator torchvision::nms does not exist", "libcudart.so.12")
first.says("torchvision 0.24.1", "2.13.0")
first.causes("hidden-cause")
first.proposes(r"pip install .*torchvision", first=True)
run.proposes_nothing_like("nvidia-cuda-runtime-cu12", r"ln -s", r"CUDA_HOME")

first.apply("torchvision")
world.under_shim(*finetune).is_silent()
