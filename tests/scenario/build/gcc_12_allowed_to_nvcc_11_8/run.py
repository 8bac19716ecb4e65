"""-allow-unsupported-compiler got past the check, and what nvcc 11.8 makes of gcc 12's headers gcc 12 does not parse: the pair
is the cause. What a user's own mistake says in the same build is for the user."""
from cudiag_scenario import *

hide_toolkit(compiler=True)
need_gcc_after(11)
world = World()
home = cuda_11_8(world)
old = gcc_11(world)
fused = kernel(world, "functional", "map")
nvcc = [f"{home}/bin/nvcc", "-allow-unsupported-compiler", "-arch=sm_80", "-std=c++17", "-c", fused, "-o", world.root / "fused.o"]

run = world.under_shim(*nvcc)
run.fails_with("error: parameter packs not expanded with", status=1)

finding = run.said("build-unsupported-host-compiler", nvcc=f"{home}/bin/nvcc", nvcc_release="11.8", limit=has("11"),
                   host_compiler=has("gcc"), host_release=has("12"), others=has(f"{old}/gcc-11"), allowed_by=has("command line"),
                   header=has("/c++/12/"), source=fused)
assert finding.json["confidence"] == "likely", describe(finding.json)
finding.proposes(r"CC=\S*gcc-11\b", first=True)

mistake = world.write("csrc/mistake.cu", """#include <string>
int bits(int x) { asm("" :: "i"(x)); return std::to_string(x).size(); }
""")
world.under_shim(*[mistake if word == fused else word for word in nvcc]).says_nothing(status=1)

finding.apply("CC=")
world.under_shim(*nvcc).is_silent()
