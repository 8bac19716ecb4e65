"""No ninja that could run: none on PATH, or one that cannot start. torch says the same of both."""
from cudiag_scenario import *

world = World(*torch_wheels(), *NVCC, pip_inside=True)
torch_world(world)
everywhere = world.set["PATH"]
only(world, "sh", "c++", "gcc", "as", "ld")
train, build = torch_build(world)

run = world.under_shim(*train, fresh=build.parent)
run.fails_with("RuntimeError: Ninja is required to load C++ extensions (pip install ninja to get it)", status=1)
finding = run.said("build-missing-compiler", program="ninja", asked="ninja", state="absent", path=has(str(world.root / "bin")))
finding.proposes(r"pip install '?ninja|apt-get install ninja-build|PATH=", first=True)

ninja = world.write("venv/bin/ninja", "#!/bin/sh\necho 'ninja: version `GLIBCXX_3.4.32 not found' >&2\nexit 1\n")
ninja.chmod(0o755)
run = world.under_shim(*train, fresh=build.parent)
assert "Ninja is required to load C++ extensions" in run.stderr, run
run.said("build-missing-compiler", program="ninja", state="broken").says(str(ninja))

ninja.unlink()
world.set["PATH"] = everywhere
world.under_shim(*train, fresh=build.parent).is_silent()
