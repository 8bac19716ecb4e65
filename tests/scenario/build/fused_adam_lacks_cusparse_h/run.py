"""The case that cudiag began with: DeepSpeed's fused_adam, a toolkit of wheels, and no cusparse.h in it."""
from cudiag_scenario import *

hide_toolkit_programs_and_headers()
world = World(*TORCH, *NVCC, *DEEPSPEED, pip_inside=True)
home = torch_world(world)
extensions = world.root / "extensions"
extensions.mkdir()
world.set |= {"DS_ACCELERATOR": "cuda", "MAX_JOBS": "2"}
train = [world.python, "-c", "from deepspeed.ops.op_builder import FusedAdamBuilder; print(FusedAdamBuilder().load().__name__)"]
finetune = [world.python, Path(__file__).parents[4] / "examples/finetune.py", "--fused-adam", "--steps", "1"]

run = world.under_shim(*finetune, fresh=extensions)
run.fails_with("fatal error: cusparse.h: No such file or directory", status=1)

finding = run.said("build-missing-header", header="cusparse.h", included_by=ends("ATen/cuda/CUDAContextLight.h:10"),
                   source=has("csrc/adam/"), searched=has(f"{home}/include"), cuda_home=home, cuda_release="13.0",
                   also_missing=has("cublas_v2.h"))
finding.proposes("pip install .*nvidia-cusparse", first=True)
tree = run.report()["run"]["build"]
assert tree, "the report has no build"

finding.apply("pip install")
built = world.under_shim(*train, fresh=extensions, twin=WORLDS_ONLY)
built.is_silent()
assert "fused_adam" in built.stdout, built
