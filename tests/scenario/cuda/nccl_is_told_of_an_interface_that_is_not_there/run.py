"""NCCL_SOCKET_IFNAME names an interface of another cluster. NCCL says only that it found none."""
from cudiag_scenario import *

world = World("nvidia-nccl-cu13==2.29.7")
program = world.write("meet.py", f"""
import ctypes
nccl = ctypes.CDLL("{world.site}/nvidia/nccl/lib/libnccl.so.2")
nccl.ncclGetLastError.restype = ctypes.c_char_p
error = nccl.ncclGetUniqueId(ctypes.create_string_buffer(128))
if error: raise RuntimeError(f"NCCL error {{error}}. Last error:\\n{{nccl.ncclGetLastError(None).decode()}}")
print("met")
""")
if world.alone(world.python, program)[0] != 0:
    raise CannotRun("NCCL finds no network interface on this machine")

world.set["NCCL_SOCKET_IFNAME"] = "eth99"
run = world.under_shim(world.python, program)
run.fails_with("Bootstrap : no socket interface found")
finding = run.said("nccl-no-interface", nccl_socket_ifname='"eth99"', interfaces=has('"lo"'))
finding.proposes("unset NCCL_SOCKET_IFNAME", first=True)
run.proposes_nothing_like("pip install", "NCCL_IB_DISABLE", "shm")

finding.apply("unset NCCL_SOCKET_IFNAME")
world.under_shim(world.python, program).is_silent()
