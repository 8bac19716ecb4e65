"""A library resets the device while the rest of the process still uses it: what fails then is not to blame. Over a double of the driver."""
import sys

from cudiag_scenario import *

sys.path.insert(0, str(Path(__file__).resolve().parents[3] / "twin" / "lib"))
import fake_driver

no_real_driver()
world = World()
(world.root / "double.c").write_text(fake_driver.source())
library = world.root / "libcuda.so.1"
subprocess.run(["gcc", "-shared", "-fPIC", "-w", "-O1", "-Wl,-soname,libcuda.so.1", "-o", library, world.root / "double.c"], check=True)
script = world.write("train.py", """import ctypes, sys

cuda = ctypes.CDLL(sys.argv[1])
cuda.cuInit(0)
kernel = ctypes.c_void_p()
cuda.cuModuleGetFunction(ctypes.byref(kernel), ctypes.c_void_p(0x4000), b"_Z9optimizerPfi")

def step():
    result = cuda.cuLaunchKernel(kernel, 8, 1, 1, 256, 1, 1, 0, None, None, None)
    if result != 0:
        raise RuntimeError("CUDA error: " + {709: "context is destroyed", 400: "invalid resource handle"}.get(result, "out of memory"))

def clean_up():
    cuda.cuDevicePrimaryCtxReset_v2(0)

for _ in range(100): step()
if "early" in sys.argv: clean_up()
step()
clean_up()
if "late" in sys.argv: raise RuntimeError("CUDA error: out of memory")
""")
world.set |= {"FAKE_DRIVER_QUIET": "1", "FAKE_DRIVER_GONE": "709"}

run = world.under_shim(world.python, script, library, "early")
assert run.status == 1, run
finding = run.said("cuda-context-destroyed", code=709, call="cuLaunchKernel", kernel="optimizer(float*, int)", grid="(8, 1, 1)",
                   destroyed_by="cuDevicePrimaryCtxReset_v2", destroyed_at=has("in clean_up"))
assert finding.json["confidence"] == "certain", finding.json
assert finding.json["where"]["python"][0]["function"] == "step", finding.json
finding.says("cudaDeviceReset")

world.set["FAKE_DRIVER_GONE"] = "400"
finding = world.under_shim(world.python, script, library, "early").said("cuda-context-destroyed", code=400)
assert finding.json["confidence"] == "likely" and "order of the calls" in finding.json["limits"], finding.json

# Who resets the device at the end, as is good custom, is well; and is not blamed for what fails otherwise.
world.under_shim(world.python, script, library).is_silent()
run = world.under_shim(world.python, script, library, "late")
assert run.status == 1 and "cuda-context-destroyed" not in [f.slug for f in run.findings()], run
