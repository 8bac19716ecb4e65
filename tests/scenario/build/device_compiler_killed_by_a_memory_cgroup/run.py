"""cicc, the part of nvcc that compiles for the device, is the one that needs most."""
from cudiag_scenario import *

hide_toolkit(compiler=True)
group = control_group("memory", 300 << 20)
world = World(*NVCC)
home = cuda_home(world)
fused = kernel(world)
fused.write_text(f"#ifdef __CUDA_ARCH__\n{table(3000, '__device__')}\n#endif\n{KERNEL}")
nvcc = [f"{home}/bin/nvcc", "-arch=sm_90", "-c", fused, "-o", world.root / "fused.o"]

run = world.under_shim(*nvcc, preexec_fn=joins(group))
run.fails_with("Killed", status=137)
run.said("build-out-of-memory", program=has("cicc"), signal=has("KILL"), source=fused, limit_kind=has("cgroup v"))
