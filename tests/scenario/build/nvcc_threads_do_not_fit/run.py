"""One nvcc, two architectures, --threads 2: two cicc at once, as flash-attention's build has four. MAX_JOBS counts them as one."""
from cudiag_scenario import *

hide_toolkit(compiler=True)
group = control_group("memory", 550 << 20)
world = World(*NVCC)
home = cuda_home(world)
fused = kernel(world)
# Some 370 MB for each cicc, and next to nothing for what comes after it: the table is used nowhere.
fused.write_text(f"#ifdef __CUDA_ARCH__\n{table(1000, 'static const')}#endif\n{KERNEL}")
jit = world.write("jit.sh", f"""{home}/bin/nvcc -w --threads ${{NVCC_THREADS:-2}} -gencode=arch=compute_80,code=sm_80 \\
    -gencode=arch=compute_90,code=sm_90 -c {fused} -o {world.root}/fused.o
""")
# Outside of the group first: its programs' pages would count in it, be dropped and read again for minutes.
status, _, stderr = world.alone("sh", jit)
assert status == 0, stderr

run = world.under_shim("sh", jit, preexec_fn=joins(group), twin=WORLDS_ONLY)
run.fails_with("Killed")

finding = run.said("build-out-of-memory", program="cicc", signal=has("KILL"), source=fused, limit_bytes=550 << 20, jobs_at_once=2,
                   threads_of_nvcc=2)
finding.proposes(r"export NVCC_THREADS=1$", first=True)

finding.apply("NVCC_THREADS=1")
world.under_shim("sh", jit, preexec_fn=joins(group)).is_silent()
