"""The model of ld.so against LD_DEBUG=libs, on every library of torch, numpy, scipy and NVIDIA's wheels: same files tried, same order."""
from cudiag_scenario import *

unit = BIN.parent / "tests/unit/cudiag_unit"
if not unit.exists():
    raise CannotRun("the unit tests are not built")
world = World(*torch_wheels(), *NVCC, "scipy==1.16.2", "nvidia-cublas-cu12==12.4.5.8", "nvidia-cusparse-cu12==12.3.1.170",
              "nvidia-nvjitlink-cu12==12.4.127", "nvidia-cufft-cu12==11.2.1.3")
done = world.alone(unit, "--gtest_filter=ModelAgreesWithLdDebug.OnWheels", env={"CUDIAG_FULL": "1", "CUDIAG_WHEELS": world.site})
status, said = done[0], done[1] + done[2]
assert status == 0, said[-5000:]
assert "SKIPPED" not in said, said
files = int(re.search(r"(\d+) files", said)[1])
assert files >= 150, said
print(f"{files} files")
