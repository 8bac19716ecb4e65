"""A container's small /dev/shm: NCCL cannot make a segment there, and calls that a system error."""
from cudiag_scenario import *

in_mount_namespace(["mount", "-t", "tmpfs", "-o", "size=8m", "tmpfs", "/dev/shm"])
world = World("nvidia-nccl-cu13==2.29.7")
program = world.write("share.py", nccl_calls(world.site / "nvidia/nccl/lib/libnccl.so.2") + """
size = ctypes.c_size_t(9637888)                         # what NCCL takes for each pair of GPUs
call("ncclShmOpen", room(64), ctypes.c_size_t(64), size, room(8), ctypes.c_void_p(), ctypes.c_int(1), room(8))
print("shared")
""")
Path("/dev/shm/nccl-Kill3d").write_bytes(bytes(1 << 20))     # of a run that was killed

run = world.under_shim(world.python, program, twin=False)     # the segment's name differs from run to run
run.fails_with("Error while creating shared memory segment /dev/shm/nccl-")
finding = run.said("nccl-shm-too-small", result="ncclSystemError", need_bytes=9637888, size_bytes=8 << 20, last_error=has("(28)"))
assert {"name": "nccl-Kill3d", "bytes": 1 << 20, "mapped_by_a_process_here": False} in finding.evidence["segments"], finding.evidence
finding.proposes(r"shm-size|medium: Memory|mount -o remount,size=")
finding.proposes("killed runs have left there")
finding.proposes("export NCCL_SHM_DISABLE=1")
assert finding.json["fixes"][-1]["command"] == "export NCCL_SHM_DISABLE=1", finding.json["fixes"]
run.proposes_nothing_like("pip install", "NCCL_P2P", "NCCL_CUMEM")

subprocess.run(["mount", "-o", "remount,size=64m", "/dev/shm"], check=True)
world.under_shim(world.python, program).is_silent()
