"""A package like apex, built ahead of time by torch's CUDAExtension: with ninja, or without it by distutils, one source after another."""
from cudiag_scenario import *

python_headers()
hide_toolkit_programs_and_headers()
world = World(*torch_wheels(), *NVCC, pip_inside=True)
home = torch_world(world)
kernel(world, "ATen/cuda/CUDAContextLight.h", name="package/fused.cu")
package = world.write("package/setup.py", """import sys
from setuptools import setup
from torch.utils.cpp_extension import BuildExtension, CUDAExtension
ninja = "--ninja" in sys.argv
sys.argv = [word for word in sys.argv if word != "--ninja"]
setup(name="fused", ext_modules=[CUDAExtension("fused", ["fused.cu"])],
      cmdclass={"build_ext": BuildExtension.with_options(use_ninja=ninja)})
""").parent
build = [world.python, "setup.py", "build_ext", "--inplace"]

for how in ([], ["--ninja"]):
    run = world.under_shim(*build, *how, cwd=package, fresh=package)
    run.fails_with("CUDAContextLight.h:10:10: fatal error: cusparse.h: No such file or directory", status=1)
    finding = run.said("build-missing-header", header="cusparse.h", included_by=ends("ATen/cuda/CUDAContextLight.h:10"),
                       source=ends("fused.cu"), cuda_home=home, cuda_release="13.0", also_missing=has("cublas_v2.h"))
    finding.proposes("pip install .*nvidia-cusparse", first=True)

finding.apply("pip install")
world.under_shim(*build, cwd=package, fresh=package, twin=WORLDS_ONLY).is_silent()
