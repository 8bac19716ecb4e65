"""apex builds its extensions only if asked. The option did not reach setup.py, pip said "Successfully installed", the import fails."""
from cudiag_scenario import *

world = World("setuptools", "nvidia-cuda-runtime-cu12==12.4.127", pip_inside=True)
world.activate()
apex = world.write("apex/setup.py", """import sys
from setuptools import Extension, setup
built = [Extension("amp_C", ["csrc/amp_C.c"])] if "--cuda_ext" in sys.argv else []
sys.argv = [word for word in sys.argv if word != "--cuda_ext"]
setup(name="apex", version="0.1", packages=["apex"], package_dir={"apex": "apex"}, ext_modules=built)
""").parent
world.write("apex/csrc/amp_C.c", "#include <Python.h>\n")
world.write("apex/apex/__init__.py", "class FusedAdam:\n    def __init__(self, parameters):\n        import amp_C\n")
installed = world.alone("pip", "install", "--no-build-isolation", "--no-deps", apex)
assert "Successfully installed apex-0.1" in installed[1], installed

# What a program has mapped that imports torch.
cudart = world.site / "nvidia/cuda_runtime/lib/libcudart.so.12"
run = world.under_shim(world.python, "-c", f"import ctypes, apex\nctypes.CDLL({str(cudart)!r})\napex.FusedAdam([])")
run.fails_with("ModuleNotFoundError: No module named 'amp_C'", status=1)

finding = run.said("package-without-extension", package="apex", version="0.1", module="amp_C")
run.did_not_say("loader-missing-library")
run.proposes_nothing_like(r"pip install amp_C", "pip install apex$")
