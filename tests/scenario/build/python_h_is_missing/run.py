"""An extension is built for a Python whose headers are not installed."""
from cudiag_scenario import *

headers = sysconfig.get_paths()["include"]
in_mount_namespace(["mount", "--bind", mount_point("empty"), headers])
world = World("setuptools")
world.set["CUDA_HOME"] = "/nonexistent"
package = setup_build(world, kernel(world, name="csrc/kernel.cu"))
build = [world.python, "setup.py", "build_ext", "--inplace"]

run = world.under_shim(*build, cwd=package, fresh=package)
run.fails_with("fused_ops.c:2:10: fatal error: Python.h: No such file or directory", status=1)

finding = run.said("build-missing-header", header="Python.h", included_by=ends("fused_ops.c:2"), searched=has(headers))
finding.proposes(r"python3(\.\d+)?-dev|install .*[Pp]ython", first=True)
run.proposes_nothing_like("pip install python", "nvidia", "cuda")
