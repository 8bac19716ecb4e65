"""A toolkit of wheels has nvcc, and not the headers of the math libraries. ninja builds what a JIT build would."""
from cudiag_scenario import *

hide_toolkit(compiler=True)
world = World(*NVCC, pip_inside=True)
home = cuda_home(world)
fused = kernel(world, "cuda_fp16.h", "cusparse.h")
build = ninja_build(world, fused)

run = world.under_shim("ninja", "-j1", "-C", build, fresh=build)
run.fails_with(f"{fused}:2:10: fatal error: cusparse.h: No such file or directory", status=1)

finding = run.said("build-missing-header", header="cusparse.h", included_by=f"{fused}:2", source=fused,
                   searched=has(f"{home}/include"), cuda_home=home, cuda_release="13.0")
finding.proposes(r"pip install .*nvidia-cusparse==12\.6", first=True)
run.proposes_nothing_like("-cu12", "-cu11", r"nvidia-cuda-toolkit", r"\bcp\b")

finding.apply("pip install")
world.under_shim("ninja", "-j1", "-C", build, fresh=build).is_silent()
assert (build / "fused.so").exists()
