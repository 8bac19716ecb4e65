"""A package's setup.py uses torch's BuildExtension, which compares releases and prints a tuple where a sentence was meant."""
from cudiag_scenario import *

python_headers()
world = World(*torch_wheels())
torch_world(world, links=False)
home = cuda_11_8(world)
kernel(world, name="package/fused.cu")
package = world.write("package/setup.py", """from setuptools import setup
from torch.utils.cpp_extension import BuildExtension, CUDAExtension
setup(name="fused", ext_modules=[CUDAExtension("fused", ["fused.cu"])], cmdclass={"build_ext": BuildExtension})
""").parent
build = [world.python, "setup.py", "build_ext", "--inplace"]

run = world.under_shim(*build, cwd=package, fresh=package)
run.fails_with("The detected CUDA version", status=1)

finding = run.said("build-toolkit-mismatch", nvcc=f"{home}/bin/nvcc", nvcc_release="11.8", torch=has("2.13.0"), torch_cuda="13.0")
run.proposes_nothing_like("nvidia-cuda-nvcc-cu11", "nvidia-cuda-toolkit")
