"""A link of many objects names its libraries at the very end of a long command line: that end must not be cut off."""
from cudiag_scenario import *

hide_toolkit(compiler=True)
world = World()
one = world.compile("build/one.o", "static int one;\n", "-c")
names = []
for n in range(400):
    names.append(f"object_{n}.o")
    (one.parent / names[-1]).hardlink_to(one)
build = world.write("build/link.sh", f"gcc -shared -o fused.so {' '.join(names)} -lcublasLt -lcudart\n")

run = world.under_shim("sh", build, cwd=build.parent)
run.fails_with("cannot find -lcudart", status=1)

run.said("build-link-failed", library="cublasLt", also_missing=has("cudart"), needed_by=ends("build/fused.so"))
