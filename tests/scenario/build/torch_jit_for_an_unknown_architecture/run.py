"""TORCH_CUDA_ARCH_LIST names a card that CUDA 13 dropped; without it, and without a card, torch indexes an empty list."""
from cudiag_scenario import *

world = World(*torch_wheels(), *NVCC)
home = torch_world(world)
if list(Path("/dev").glob("nvidia[0-9]*")):
    raise CannotRun("a GPU is here, whose architecture torch would take")
train, build = torch_build(world)

world.set["TORCH_CUDA_ARCH_LIST"] = "7.0"
run = world.under_shim(*train, fresh=build.parent)
run.fails_with("nvcc fatal   : Unsupported gpu architecture 'compute_70'", status=1)
finding = run.said("build-unsupported-arch", architecture=has("70"), nvcc=f"{home}/bin/nvcc", nvcc_release="13.0",
                   supported=has("90"), torch_cuda_arch_list="7.0", flag_from=has("TORCH_CUDA_ARCH_LIST"))
finding.proposes(r"export TORCH_CUDA_ARCH_LIST=.*nvidia-smi", first=True)

world.set["TORCH_CUDA_ARCH_LIST"] = "12.9"
run = world.under_shim(*train, fresh=build.parent)
run.fails_with("ValueError: Unknown CUDA arch (12.9) or GPU not supported", status=1)
run.said("build-unsupported-arch", architecture="12.9", nvcc=has(""), supported=has("90"))

world.set["TORCH_CUDA_ARCH_LIST"] = None
run = world.under_shim(*train, fresh=build.parent)
assert run.status == 1 and "IndexError: list index out of range" in run.stderr, run
finding = run.said("build-unsupported-arch", nvcc=has(""), supported=has("90"))
finding.proposes(r"export TORCH_CUDA_ARCH_LIST=", first=True)

world.set["TORCH_CUDA_ARCH_LIST"] = "9.0"
world.under_shim(*train, fresh=build.parent).is_silent()
