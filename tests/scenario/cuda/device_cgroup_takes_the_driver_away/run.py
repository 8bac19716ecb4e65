"""The device cgroup no longer lets the job open the driver's nodes, which are still listed: what a container finds after somebody
reloaded systemd on its host."""
from cudiag_scenario import *

def devices_group():
    mounts = [line.split() for line in Path("/proc/self/mounts").read_text().splitlines()]
    top = next((Path(m[1]) for m in mounts if m[2] == "cgroup" and "devices" in m[3].split(",")), None)
    if os.geteuid() != 0 or top is None:
        raise CannotRun("no devices cgroup of version 1 (needs root)")
    try:
        group = top / f"cudiag-{os.getpid()}"
        group.mkdir()
        atexit.register(group.rmdir)
        (group / "devices.deny").write_text("c 195:* rwm")
    except OSError as error:
        raise CannotRun(f"no devices cgroup may be made here: {error}") from None
    return group

# A /dev of our own with a node of NVIDIA's number in it.
dev = mount_point("dev")
in_mount_namespace(["mount", "-t", "tmpfs", "tmpfs", dev], ["cp", "-a", "/dev/null", "/dev/zero", "/dev/urandom", "/dev/random", dev],
                   ["mkdir", f"{dev}/shm"], ["mknod", "-m", "666", f"{dev}/nvidiactl", "c", "195", "255"],
                   ["mount", "--bind", dev, "/dev"])
group = devices_group()
world = World("nvidia-cuda-runtime==13.0.96")
fake_driver(world, init=999, release="580.65.06")
program = world.write("count.py", f"""
import ctypes
cudart = ctypes.CDLL("{world.site}/nvidia/cu13/lib/libcudart.so.13")
cudart.cudaGetErrorString.restype = ctypes.c_char_p
error = cudart.cudaGetDeviceCount(ctypes.byref(ctypes.c_int()))
if error: raise RuntimeError(f"CUDA error: {{cudart.cudaGetErrorString(error).decode()}}")
""")

run = world.under_shim(world.python, program, preexec_fn=joins(group))
run.fails_with("CUDA error: unknown error")
run.said("container-device-revoked", node="/dev/nvidiactl", errno=1, uid=0)
run.did_not_say("cuda-device-unavailable")
run.proposes_nothing_like("reinstall", "modprobe", "nvidia-driver", "pip install")

# The same code, where the nodes may be opened, is another matter.
run = world.under_shim(world.python, program)
run.fails_with("CUDA error: unknown error").did_not_say("container-device-revoked")
run.said("cuda-device-unavailable", code=999)
