"""A slim image: ninja is there, and no C++ compiler that PATH would find."""
from cudiag_scenario import *

world = World()
world.set["CUDA_HOME"] = "/nonexistent"
path = only(world, "ninja", "sh")
build = ninja_build(world, "none.cu")

run = world.under_shim("ninja", "-j1", "-C", build, "main.o", fresh=build)
run.fails_with("c++: not found", status=1)

finding = run.said("build-missing-compiler", program="c++", asked="c++", path=path, state="absent")
run.did_not_say("build-missing-header")
run.proposes_nothing_like("nvidia", "ninja")

(world.root / "bin/c++").symlink_to(need_program("c++"))
for tool in ("as", "ld"):
    (world.root / "bin" / tool).symlink_to(need_program(tool))
world.under_shim("ninja", "-j1", "-C", build, "main.o", fresh=build).is_silent()
