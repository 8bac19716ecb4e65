"""glibc 2.41 declares cospi() and sinpi() for C++ as noexcept, the headers of CUDA up to 12.9 do not. No other gcc helps."""
from cudiag_scenario import *

hide_toolkit(compiler=True)
world = World(*NVCC)
new = cuda_home(world)
home = cuda_11_8(world)
world.set["CC"] = str(gcc_11(world) / "g++-11")
glibc = world.write("glibc-2.41/include/bits/mathcalls.h", """#include_next <bits/mathcalls.h>
__MATHCALL (cospi,, (_Mdouble_ __x));
__MATHCALL (sinpi,, (_Mdouble_ __x));
""").parents[1]
world.write("glibc-2.41/include/features.h", """#include_next <features.h>
#undef __GLIBC_MINOR__
#define __GLIBC_MINOR__ 41
#define __GLIBC_USE_ISOC23 1
""")
fused = kernel(world)
build = make_build(world, fused)
make = ["make", "-C", build, "fused.o", "NVCC=$(CUDA_HOME)/bin/nvcc -arch=sm_80 -ccbin $(CC) -I" + str(glibc)]
world.write("build/make/Makefile", (build / "Makefile").read_text().replace(" -arch=sm_90", ""))

run = world.under_shim(*make, fresh=build)
run.fails_with('exception specification is incompatible with that of previous function "cospi"', status=2)

finding = run.said("build-incompatible-headers", pair=has("glibc"), a_release=has(""), b_release=has(""))
finding.says("2.41", "11.8")
run.did_not_say("build-unsupported-host-compiler", "build-missing-header")
run.proposes_nothing_like("gcc-1", "-ccbin", "CC=")

world.set["CUDA_HOME"] = str(new)
world.under_shim(*make, fresh=build).is_silent()
