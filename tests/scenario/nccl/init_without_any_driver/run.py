"""NCCL hands on CUDA's error where no driver is: the missing driver is the cause, NCCL's failure what came of it."""
from cudiag_scenario import *

no_real_driver()
world = World("nvidia-nccl-cu13==2.29.7")
program = world.write("init.py", f"""
import ctypes
nccl = ctypes.CDLL("{world.site}/nvidia/nccl/lib/libnccl.so.2")
class Id(ctypes.Structure): _fields_ = [("bytes", ctypes.c_byte * 128)]
nccl.ncclGetLastError.restype = nccl.ncclGetErrorString.restype = ctypes.c_char_p
nccl.ncclCommInitRank.argtypes = [ctypes.c_void_p, ctypes.c_int, Id, ctypes.c_int]
unique, comm = Id(), ctypes.c_void_p()
for error in (nccl.ncclGetUniqueId(ctypes.byref(unique)), nccl.ncclCommInitRank(ctypes.byref(comm), 1, unique, 0)):
    if error: raise RuntimeError(f"NCCL error {{error}}: {{nccl.ncclGetErrorString(error).decode()}}\\n"
                                 f"Last error:\\n{{nccl.ncclGetLastError(None).decode()}}")
""")

run = world.under_shim(world.python, program)
run.fails_with("Cuda failure 'CUDA driver version is insufficient for CUDA runtime version'")
finding = run.said("nccl-cuda-error", result="ncclUnhandledCudaError", code=35, nccl_version="2.29.7",
                   nccl=ends("/nvidia/nccl/lib/libnccl.so.2"))
run.said("cuda-no-driver", code=35).causes("nccl-cuda-error")
assert not finding.json["fixes"], finding.json["fixes"]
run.did_not_say("nccl-version-mix", "nccl-system-error", "nccl-no-interface")
run.proposes_nothing_like("pip install", "NCCL_", "shm", "[Uu]pgrade the")
