"""A program has opened all the files that it may, and NCCL gets no further one: it calls that a system error.

Without a descriptor no recording can be begun; here one is, because the program had looked for a library before."""
from cudiag_scenario import *

world = World("nvidia-nccl-cu13==2.29.7")
program = world.write("meet.py", f"""
import ctypes
try: ctypes.CDLL("libnvToolsExt.so.0")                  # asked for and done without, as programs do: the recording is open
except OSError: pass
nccl = ctypes.CDLL("{world.site}/nvidia/nccl/lib/libnccl.so.2")
nccl.ncclGetLastError.restype = nccl.ncclGetErrorString.restype = ctypes.c_char_p
shards = []
try:
    for _ in range(400): shards.append(open("/dev/null"))
except OSError:
    pass                                                # goes on with those that it has
error = nccl.ncclGetUniqueId(ctypes.create_string_buffer(128))
last = nccl.ncclGetLastError(None).decode()
for shard in shards: shard.close()
if error: raise RuntimeError(f"NCCL error: {{nccl.ncclGetErrorString(error).decode()}}\\nLast error:\\n{{last}}")
print("met with", len(shards))
""")
if resource.getrlimit(resource.RLIMIT_NOFILE)[1] < 1024:
    raise CannotRun("the hard limit of open files is too low to be raised to")


def begun_by(limit):
    return ["bash", "-c", f'{limit}; exec "$0" "$1"', world.python, program]


run = world.under_shim(*begun_by("ulimit -Sn 256"))
run.fails_with("Last error:\nCall to getifaddrs failed: Too many open files")
finding = run.said("nccl-system-error", result="ncclSystemError", open_files_limit=256,
                   last_error="Call to getifaddrs failed: Too many open files")
finding.proposes("ulimit -n", first=True)
run.proposes_nothing_like("pip install", "shm", "NCCL_")

world.under_shim(*begun_by(f"ulimit -Sn 256; {finding.command()}")).is_silent()
