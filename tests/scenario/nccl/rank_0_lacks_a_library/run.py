"""Rank 0 ends for want of a library. Rank 1 has the louder words, NCCL's: it lost rank 0, and what that lacked is the cause."""
from cudiag_scenario import *

world = World("nvidia-nccl-cu13==2.29.7")
zero = world.write("zero.py", 'import ctypes\nctypes.CDLL("libcudart.so.11.0")\n')
one = world.write("one.py", nccl_calls(world.site / "nvidia/nccl/lib/libnccl.so.2") + """
address = ctypes.create_string_buffer(struct.pack("<H", socket.AF_INET) + struct.pack(">H", int(os.environ["PORT"])) +
                                      socket.inet_aton("127.0.0.1"), 64)
other = room(4096)
call("ncclSocketInit", other, ctypes.cast(address, ctypes.c_void_p), ctypes.c_uint64(1), ctypes.c_int(1), ctypes.c_void_p(),
     ctypes.c_int(0), ctypes.c_int(0))
call("ncclSocketConnect", other)
""")
launcher = world.write("launch.py", f"""
import os, socket, subprocess, sys
with socket.socket() as held:
    held.bind(("127.0.0.1", 0))
    port = held.getsockname()[1]
def rank(number, program):
    return subprocess.call([sys.executable, program], env=os.environ | {{"RANK": str(number), "WORLD_SIZE": "2", "PORT": str(port)}})
sys.exit(max(rank(0, {str(zero)!r}), rank(1, {str(one)!r})))
""")
world.set |= {"NCCL_SOCKET_RETRY_CNT": "1", "NCCL_SOCKET_RETRY_SLEEP_MSEC": "1"}
run = world.under_shim(world.python, launcher, twin=False)       # the port differs from run to run
run.fails_with("returned Connection refused")
lost = run.said("nccl-remote-error", printed=False)
cause = run.said("loader-missing-library", printed=False, library="libcudart.so.11.0").causes("nccl-remote-error")
assert (cause.json["rank"], lost.json["rank"]) == (0, 1), (cause.json["rank"], lost.json["rank"])
assert lost.evidence["failed_before"] == cause.json["pid"] and "rank 0" in lost.title, lost.json
assert [f.slug for f in run.findings()][0] == "loader-missing-library", run.findings()
