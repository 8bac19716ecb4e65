"""An extension that was built with torch 2.9.1 is loaded by 2.13.0, and the other way round: one argument of one function has changed
its type."""
from cudiag_scenario import *

IMPLEMENTATION = "c10::cuda::c10_cuda_check_implementation(int, char const*, char const*, {}, bool)"
CHECK = dict(declares="#include <c10/cuda/CUDAException.h>", runs="([] { C10_CUDA_CHECK(cudaSuccess); }(), 0)", language="c++")
older = ("torch==2.9.1", "int", "_ZN3c104cuda29c10_cuda_check_implementationEiPKcS2_ib", torch_cu12_wheels)
newer = ("torch==2.13.0", "unsigned int", "_ZN3c104cuda29c10_cuda_check_implementationEiPKcS2_jb", torch_wheels)
headers = wheel("nvidia-cuda-runtime==13.0.96") / "nvidia/cu13/include"

for (built_with, wanted, symbol, _), (loaded_by, there, _, wheels) in ((older, newer), (newer, older)):
    world = World(*wheels())
    torch = wheel(built_with) / "torch"
    extension = world.extension("fused_ops", [], torch / "lib/libc10_cuda.so", f"-I{torch}/include", f"-I{headers}", **CHECK)

    run = world.under_shim(world.python, "-c", "import torch, fused_ops")
    run.fails_with(f"undefined symbol: {symbol}")

    finding = run.said("loader-abi-mismatch", symbol=symbol, file=extension, demangled=IMPLEMENTATION.format(wanted),
                       exported_instead=has(IMPLEMENTATION.format(there)))
    finding.says(loaded_by.removeprefix("torch=="))
    finding.proposes(r"[Rr]ebuild .*fused_ops|no-build-isolation")
    finding.does_not_propose(r"pip install .*nvidia-", "LD_LIBRARY_PATH")
