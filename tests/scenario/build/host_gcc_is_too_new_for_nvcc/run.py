"""nvcc 11.8 refuses gcc 12. A gcc 11 is installed beside it, and this build hands CC to nvcc, as torch does."""
from cudiag_scenario import *

hide_toolkit(compiler=True)
need_gcc_after(11)
world = World()
home = cuda_11_8(world)
old = gcc_11(world)
fused = kernel(world, "cuda_fp16.h")
jit = world.write("jit.sh", f"""set -e
${{CXX:-c++}} --version | head -1
{home}/bin/nvcc ${{CC:+-ccbin $CC}} -arch=sm_80 -std=c++17 -c {fused} -o {world.root}/fused.o
""")

run = world.under_shim("sh", jit)
run.fails_with("#error -- unsupported GNU version! gcc versions later than 11 are not supported!")

finding = run.said("build-unsupported-host-compiler", nvcc=f"{home}/bin/nvcc", nvcc_release="11.8", limit=has("11"),
                   host_compiler=has("gcc"), host_release=has("12"), others=has(f"{old}/gcc-11"))
finding.proposes(r"CC=\S*gcc-11\b", first=True)
run.did_not_say("build-missing-header", "build-incompatible-headers")
run.proposes_nothing_like("allow-unsupported-compiler")

finding.apply("CC=")
world.under_shim("sh", jit).is_silent()
