"""A program went on without a library that is broken, and much later NCCL failed. The library is not why."""
from cudiag_scenario import *

world = World("nvidia-nccl-cu13==2.29.7")
world.library("gone/libhelper.so", "int help(void) { return 1; }")
ops = world.library("ops/libfast.so", "int help(void); int fast(void) { return help(); }", "-L", str(world.root / "gone"), "-lhelper")
shutil.rmtree(world.root / "gone")
program = world.write("meet.py", f"""
import ctypes
try: ctypes.CDLL({str(ops)!r})
except OSError: pass                                    # slower, without it
nccl = ctypes.CDLL("{world.site}/nvidia/nccl/lib/libnccl.so.2")
nccl.ncclGetLastError.restype = ctypes.c_char_p
error = nccl.ncclGetUniqueId(ctypes.create_string_buffer(128))
if error: raise RuntimeError(f"NCCL error {{error}}. Last error:\\n{{nccl.ncclGetLastError(None).decode()}}")
""")
world.set["NCCL_SOCKET_IFNAME"] = "eth99"
run = world.under_shim(world.python, program)
run.fails_with("Bootstrap : no socket interface found")
run.said("nccl-no-interface").proposes("unset NCCL_SOCKET_IFNAME", first=True)
run.did_not_say("hidden-cause")
for finding in run.findings():
    assert finding.slug == "nccl-no-interface" or finding.json["severity"] == "note", finding.json
assert [f.slug for f in run.findings() if f.slug.startswith("loader-")], "the broken library is not even noted"
