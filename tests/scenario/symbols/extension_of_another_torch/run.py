"""An extension that was built with torch 2.9.1 is loaded by torch 2.13.0: one argument of one function has changed its type."""
from cudiag_scenario import *

# As 2.9.1 declares it (c10/cuda/CUDAException.h); 2.13.0 has uint32_t for the line.
DECLARED = "namespace c10::cuda { void c10_cuda_check_implementation(int, const char*, const char*, int, bool); }"

world = World(*torch_wheels())
extension = world.extension("fused_ops", [], world.site / "torch/lib/libc10_cuda.so", declares=DECLARED,
                            runs='(c10::cuda::c10_cuda_check_implementation(0, "", "", 0, false), 0)')

run = world.under_shim(world.python, "-c", "import torch, fused_ops")
run.fails_with("undefined symbol: _ZN3c104cuda29c10_cuda_check_implementationEiPKcS2_ib")

finding = run.said("loader-abi-mismatch", symbol="_ZN3c104cuda29c10_cuda_check_implementationEiPKcS2_ib", file=extension,
                   demangled="c10::cuda::c10_cuda_check_implementation(int, char const*, char const*, int, bool)",
                   exported_instead=has("c10_cuda_check_implementation(int, char const*, char const*, unsigned int, bool)"))
finding.says("2.13.0")
finding.proposes(r"[Rr]ebuild .*fused_ops|no-build-isolation")
finding.does_not_propose(r"pip install .*nvidia-", "LD_LIBRARY_PATH")
