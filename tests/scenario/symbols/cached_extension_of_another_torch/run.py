"""The JIT build of fused_adam is found in a cache that several environments share; it was built there by another torch. That
no compiler is installed explains why it is not built anew, not why it fails."""
from cudiag_scenario import *

DECLARED = "namespace c10::cuda { void c10_cuda_check_implementation(int, const char*, const char*, int, bool); }"

world = World(*torch_wheels())
cache = world.home / ".cache/torch_extensions/py311_cu130/fused_adam"
other = world.write("old-venv/lib/python3.11/site-packages/torch/version.py", "__version__ = '2.9.1+cu128'\n").parent
world.extension("fused_adam", [], world.site / "torch/lib/libc10_cuda.so", directory=cache, declares=DECLARED,
                runs='(c10::cuda::c10_cuda_check_implementation(0, "", "", 0, false), 0)')
built = next(cache.glob("fused_adam*.so")).rename(cache / "fused_adam.so")
world.write(cache / "build.ninja", f"cflags = -DTORCH_EXTENSION_NAME=fused_adam -isystem {other}/include -std=c++20\n")
train = world.write("train.py", f"""
import importlib.util, shutil, torch
if shutil.which("c++", path="/nonexistent") is None:
    print("no compiler: the cached build is used")
spec = importlib.util.spec_from_file_location("fused_adam", {str(built)!r})
importlib.util.module_from_spec(spec)
""")

run = world.under_shim(world.python, train)
run.fails_with("undefined symbol: _ZN3c104cuda29c10_cuda_check_implementationEiPKcS2_ib")

finding = run.said("loader-abi-mismatch", file=built, built_with=has("2.9.1+cu128"), torch=has("2.13.0"))
finding.says(str(cache))
finding.proposes(r"rm -r .*fused_adam", first=True)
finding.does_not_propose(r"apt install", "pip install")

finding.apply("rm -r")
assert not cache.exists() and cache.parent.exists()
