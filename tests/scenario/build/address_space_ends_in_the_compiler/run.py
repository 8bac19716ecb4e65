"""ulimit -v, as batch systems set it: no signal, no cgroup. gcc and nvcc each say it in words of their own."""
from cudiag_scenario import *

hide_toolkit(compiler=True)
world = World(*NVCC)
cuda_home(world)
limit = lambda: resource.setrlimit(resource.RLIMIT_AS, (150 << 20, 150 << 20))
build = ninja_build(world, kernel(world), main=world.write("csrc/tables.cpp", table(1000)))

run = world.under_shim("ninja", "-j1", "-C", build, "main.o", fresh=build, preexec_fn=limit)
run.fails_with("virtual memory exhausted: Cannot allocate memory", status=1)
finding = run.said("build-out-of-memory", program=has("cc1plus"), source=ends("csrc/tables.cpp"), limit_bytes=150 << 20,
                   limit_kind="RLIMIT_AS", jobs_at_once=1)
finding.proposes("ulimit -v")

run = world.under_shim("ninja", "-j1", "-C", build, "fused.cuda.o", fresh=build, preexec_fn=limit)
run.fails_with("catastrophic error: out of memory", status=1)
run.said("build-out-of-memory", program=has("cudafe++"), source=ends("csrc/fused.cu"), limit_kind="RLIMIT_AS")

world.under_shim("ninja", "-j1", "-C", build, "main.o", "fused.cuda.o", fresh=build).is_silent()
