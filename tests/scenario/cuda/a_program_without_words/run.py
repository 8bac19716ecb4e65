"""A C program that asks for a GPU and ends with status 1, without a word why. The driver's own failed call is all that tells."""
from cudiag_scenario import *

world = World("nvidia-cuda-runtime==13.0.96")
lib = world.site / "nvidia/cu13/lib"
SOURCE = """
int cudaGetDeviceCount(int* count);
int main(int argc, char** argv) { int count = 0; return cudaGetDeviceCount(&count) != 0 && argc == 1; }
"""
program = world.compile("solver", SOURCE, lib / "libcudart.so.13", f"-Wl,-rpath,{lib}")

fake_driver(world, init=802, release="580.65.06")
run = world.under_shim(program)
assert run.status == 1, run
if not run.findings():
    raise CannotRun("this build of the shim does not record the driver's calls")
finding = run.said("cuda-device-unavailable", code=802, call=has("cuInit"), driver_release="580.65.06", runtime_cuda="13.0")
assert finding.json["confidence"] == "likely", finding.json
finding.proposes("Fabric")

# The same refusal in a program that goes on without a GPU.
world.under_shim(program, "--cpu").is_silent()

# A driver of an older major makes no call fail: its version and the runtime's tell.
world.set.pop("LD_LIBRARY_PATH")
fake_driver(world, version=12040, directory="older", release="550.54.14")
run = world.under_shim(program)
assert run.status == 1, run
run.said("cuda-driver-too-old", driver_cuda="12.4", minimum="580.65.06", runtime_cuda="13.0").proposes("branch 580")
run.did_not_say("cuda-no-driver", "cuda-device-unavailable")
