"""Which code a library has for which GPUs, as read here and as NVIDIA's cuobjdump lists it: a sample of the libraries of wheels, built by CUDA
11.8 to 13.0, compressed in each way, and some without any."""
from cudiag_scenario import *
from worlds import wheel

unit = BIN.parent / "tests/unit/cudiag_unit"
if not unit.exists():
    raise CannotRun("the unit tests are not built")
SAMPLE = {"nvidia-nccl-cu12==2.18.3": ["nvidia/nccl/lib/libnccl.so.2"], "nvidia-nccl-cu13==2.29.7": ["nvidia/nccl/lib/libnccl.so.2"],
          "nvidia-nccl-cu13==2.30.7": ["nvidia/nccl/lib/libnccl.so.2"], "torchvision==0.24.1": ["torchvision/_C.so", "torchvision/image.so"],
          "bitsandbytes==0.49.2": [f"bitsandbytes/libbitsandbytes_{name}.so" for name in ("cuda118", "cuda124", "cuda128", "cuda130", "cpu")],
          "nvidia-cufft==12.0.*": ["nvidia/cu13/lib/libcufft.so.12"], "nvidia-curand==10.4.*": ["nvidia/cu13/lib/libcurand.so.10"],
          "nvidia-cuda-runtime==13.0.96": ["nvidia/cu13/lib/libcudart.so.13"]}
world = World()
cuobjdump = next(wheel("nvidia-cuda-cuobjdump==13.2.78").rglob("bin/cuobjdump"), None)
if cuobjdump is None:
    raise CannotRun("the wheel has no cuobjdump for this machine")
sample = world.root / "sample"
count = 0
for requirement, files in SAMPLE.items():
    for file in files:
        found = wheel(requirement) / file
        assert found.exists(), found
        place = sample / str(count)
        place.mkdir(parents=True)
        (place / found.name).symlink_to(found)
        count += 1
status, out, err = world.alone(unit, "--gtest_filter=DeviceCodeIn.AgreesWithCuobjdumpOnTheLibrariesOfWheels",
                               env={"CUDIAG_WHEELS": str(sample), "CUDIAG_CUOBJDUMP": str(cuobjdump)})
assert status == 0, (out + err)[-5000:]
assert "SKIPPED" not in out, out
compared = int(re.search(r"(\d+) libraries with device code", out)[1])
# Three have none (cpu, image, cudart); at what CUDA 13 has dropped, in the oldest NCCL, cuobjdump gives up.
assert compared == count - 4, f"{compared} of {count}"
print(f"{compared} libraries agree")
