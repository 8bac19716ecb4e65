"""cudiag bench adam where it cannot be: the reason, in the driver's words, and exit status 3."""
from cudiag_scenario import *

if not GPU_COMMAND.exists():
    raise CannotRun("cudiag-gpu was not built: no nvcc")
world = World()
no_real_driver()
world.cudiag("bench", "adam").ends_with(3, "cudiag: cannot measure: no CUDA driver: libcuda.so.1")
fake_driver(world)
world.cudiag("bench", "adam").ends_with(3, "lacks cuDevice")

measuring_driver(world)
world.cudiag("bench", "adam", env={"MEASURING_FAILS": "cuInit=100"}).ends_with(3, "cuInit gave 100 (CUDA_ERROR_NO_DEVICE: told by a double)")
world.cudiag("bench", "adam", "--device", "1").ends_with(3, "cuDeviceGet gave 101")
world.cudiag("bench", "adam", env={"MEASURING_FREE_GB": "2"}).ends_with(3, "has 2048 MB free, too little")
world.cudiag("bench", "adam", "--elements", "10000000000", "--tensors", "3").ends_with(3, "too little")
world.cudiag("bench", "adam", env={"MEASURING_FAILS": "cuStreamSynchronize=700"}).ends_with(3, "cuStreamSynchronize gave 700")

closed = world.write("closed", "a file, so no directory can be made below")
unkept = world.cudiag("bench", "adam", runs=closed).ends_with(0, "copy: 4000 GB/s", "could not keep the figures")

# Without nvcc at build time there is no cudiag-gpu.
alone = world.root / "bin"
alone.mkdir()
shutil.copy(COMMAND, alone)
done = subprocess.run([alone / "cudiag", "bench", "adam"], capture_output=True, text=True, env=world.variables())
assert done.returncode == 3 and "is not beside this command" in done.stderr and len(done.stderr.splitlines()) == 1, done
