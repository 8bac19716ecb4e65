"""The kernels compile with nvcc 11.8 and gcc 11, for Volta to Hopper; those that need 32 KB of parameters are left out there."""
from cudiag_scenario import *

ROOT = Path(__file__).resolve().parents[4]
world = World()
home = cuda_11_8(world)
path = gcc_11(world)
for name in ("adam", "chunked_adam"):
    status, stdout, stderr = world.alone(home / "bin/nvcc", "-fatbin", "-std=c++17", "-O3", f"-I{ROOT}", "-gencode", "arch=compute_70,code=sm_70",
                                         "-gencode", "arch=compute_90,code=sm_90", "-ccbin", Path(path) / "g++-11",
                                         "-Xfatbin=--compress=false", ROOT / f"kernels/{name}.cu", "-o", world.root / f"{name}.fatbin")
    assert status == 0, stderr
    code = (world.root / f"{name}.fatbin").read_bytes()
    world.cudiag("libs", world.root / f"{name}.fatbin").ends_with(0, "sm_70", "sm_90")
    assert (b"cudiag_adam_bfloat16_float32_master_amsgrad_listed" if name == "adam" else b"cudiag_chunked_float16_double_small") in code
    assert b"_large" not in code
