"""torch's own headers include those of cuSPARSE, cuBLAS and cuSOLVER. Who is told of the first alone comes back twice."""
from cudiag_scenario import *

hide_toolkit_programs_and_headers()
world = World(*TORCH, *NVCC, pip_inside=True)
home = torch_world(world)
train, build = torch_build(world, "ATen/cuda/CUDAContext.h")

run = world.under_shim(*train, fresh=build.parent)
run.fails_with("CUDAContextLight.h:10:10: fatal error: cusparse.h: No such file or directory", status=1)

finding = run.said("build-missing-header", header="cusparse.h", included_by=ends("ATen/cuda/CUDAContextLight.h:10"),
                   source=ends("csrc/fused.cu"), searched=has(f"{home}/include"), cuda_home=home, cuda_release="13.0",
                   also_missing=has("cublas_v2.h"))
finding.says("cusolverDn.h")
finding.proposes(r"pip install .*nvidia-cusparse==12\.6.*nvidia-cublas==13\.1|pip install .*nvidia-cublas.*nvidia-cusparse", first=True)
run.proposes_nothing_like("-cu12", "nvidia-cuda-toolkit", "TORCH_CUDA_ARCH_LIST")

finding.apply("pip install")
built = world.under_shim(*train, fresh=build.parent, twin=WORLDS_ONLY)
built.is_silent()
assert "built and loaded" in built.stdout, built
