"""A package's own setup.py calls nvcc, without any class of torch's. What its user reads last is about nvcc's exit status."""
from cudiag_scenario import *

hide_toolkit(compiler=True)
python_headers()
world = World(*NVCC, "setuptools", pip_inside=True)
home = cuda_home(world)
package = setup_build(world, kernel(world, "cusparse.h"))
build = [world.python, "setup.py", "build_ext", "--inplace"]

run = world.under_shim(*build, cwd=package, fresh=package)
run.fails_with("fused.cu:1:10: fatal error: cusparse.h: No such file or directory", status=1)
assert f"error: command '{home}/bin/nvcc' failed with exit code 1" in run.stderr, run

finding = run.said("build-missing-header", header="cusparse.h", included_by=ends("fused.cu:1"), source=ends("fused.cu"),
                   searched=has(f"{home}/include"), cuda_home=home, cuda_release="13.0")
finding.proposes(r"pip install .*nvidia-cusparse==12\.6", first=True)
run.proposes_nothing_like("-cu12", "nvidia-cuda-toolkit", "cp ")

finding.apply("pip install")
world.under_shim(*build, cwd=package, fresh=package).is_silent()
world.under_shim("pip", "install", "--no-build-isolation", "--no-deps", package, twin=False).is_silent()
world.under_shim(world.python, "-c", "import fused_ops").is_silent()
