"""--build compiles and loads an extension, or says why that failed; --launch tries the GPU, and says why there is none."""
from cudiag_scenario import *

no_real_driver()
hide_toolkit_programs_and_headers()
world = World(*torch_wheels(), *NVCC, pip_inside=True)
home = torch_world(world)
runs = world.root / "own-runs"

missing = Diagnosis(world, "--build", env={"CUDIAG_DIR": str(runs)}).answers_with(build="red")
built = next(check for check in missing.json["checks"] if check["name"] == "really-built")
assert built["health"] == "red" and built["finding"]["slug"] == "build-missing-header", built
assert built["finding"]["evidence"]["header"] == "cusparse.h", built
assert not runs.exists(), "a trial is no run of the user's"

missing.apply("build-missing-header", "pip install")
whole = Diagnosis(world, "--build", "--launch").answers_with(import_="green", build="green", launch="red")
assert "really built an extension" in whole.answers["build"]["text"], whole
launched = next(check for check in whole.json["checks"] if check["name"] == "really-launched")
assert launched["finding"]["slug"] == "cuda-no-driver", launched
