"""NCCL is to meet a rank that has ended: its host answers, and nobody listens there. Why it ended, this rank cannot know."""
from cudiag_scenario import *

world = World("nvidia-nccl-cu13==2.29.7")
program = world.write("connect.py", nccl_calls(world.site / "nvidia/nccl/lib/libnccl.so.2") + """
listener = socket.socket()
listener.bind(("127.0.0.1", 0))
port = listener.getsockname()[1]
if os.environ.get("OTHER") == "lives": listener.listen()
else: listener.close()
address = ctypes.create_string_buffer(struct.pack("<H", socket.AF_INET) + struct.pack(">H", port) + socket.inet_aton("127.0.0.1"), 64)
other = room(4096)
call("ncclSocketInit", other, ctypes.cast(address, ctypes.c_void_p), ctypes.c_uint64(1), ctypes.c_int(1), ctypes.c_void_p(),
     ctypes.c_int(0), ctypes.c_int(0))
call("ncclSocketConnect", other)
print("met")
""")
world.set |= {"NCCL_SOCKET_RETRY_CNT": "1", "NCCL_SOCKET_RETRY_SLEEP_MSEC": "1"}
run = world.under_shim(world.python, program, twin=False, env={"RANK": "1", "WORLD_SIZE": "2"})
run.fails_with("returned Connection refused")
finding = run.said("nccl-remote-error", result="ncclRemoteError", rank="1", last_error=has("exceeded error retry count"))
assert finding.json["rank"] == 1 and not finding.json["fixes"], finding.json
run.did_not_say("nccl-system-error", "nccl-no-interface")
world.under_shim(world.python, program, env={"OTHER": "lives"}).is_silent()
