"""A package's setup.py has the flags of old cards written into it. TORCH_CUDA_ARCH_LIST, the usual advice, changes nothing."""
from cudiag_scenario import *

hide_toolkit(compiler=True)
python_headers()
world = World(*NVCC, "setuptools")
home = cuda_home(world)
world.set["TORCH_CUDA_ARCH_LIST"] = "9.0"
package = setup_build(world, kernel(world), flags="-gencode=arch=compute_70,code=sm_70")
build = [world.python, "setup.py", "build_ext", "--inplace"]

run = world.under_shim(*build, cwd=package, fresh=package)
run.fails_with("nvcc fatal   : Unsupported gpu architecture 'compute_70'", status=1)

finding = run.said("build-unsupported-arch", architecture=has("70"), nvcc=f"{home}/bin/nvcc", supported=has("90"),
                   torch_cuda_arch_list="9.0", flag_from=has("setup.py"))
run.proposes_nothing_like("export TORCH_CUDA_ARCH_LIST")

setup = package / "setup.py"
setup.write_text(setup.read_text().replace(" -gencode=arch=compute_70,code=sm_70", ""))
world.under_shim(*build, cwd=package, fresh=package).is_silent()
