"""The program itself NEEDs a library that is gone: ld.so ends it before any preload runs. `cudiag run` looks before it starts
it, and gives back the program's own status."""
from cudiag_scenario import *

world = World()
cudart = wheel("nvidia-cuda-runtime-cu11==11.8.89") / "nvidia/cuda_runtime/lib/libcudart.so.11.0"
server = world.compile("server", "int cudaGetLastError(); int main() { return cudaGetLastError(); }", cudart)
status, _, stderr = world.alone(server)
assert status == 127 and "libcudart.so.11.0: cannot open shared object file" in stderr, stderr

asked = world.cudiag("run", "--", server, runs=world.root / "runs")
asked.ends_with(127, "libcudart.so.11.0: cannot open shared object file", "libcudart.so.11.0, needed by server")
world.cudiag("run", "--", "sh", "-c", "exit 7", runs=world.root / "healthy").ends_with(7)
world.cudiag("run", "--", "sh", "-c", "kill -TERM $$", runs=world.root / "killed").ends_with(143)
