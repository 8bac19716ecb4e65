"""What this machine can do for a scenario: programs, namespaces, and a CUDA toolkit that must be out of sight."""

import atexit
import ctypes
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path


class CannotRun(Exception):
    """This machine lacks something that the scenario cannot do without; says what in one line."""


def need_program(name):
    path = shutil.which(name)
    if path is None:
        raise CannotRun(f"no {name} on this machine")
    return path


def in_mount_namespace(*mounts):
    """Runs the rest of the story in a mount namespace of its own, after these commands (lists of words) in it.

    As root, or as root of a user namespace where the kernel lets ordinary users make one.
    """
    if os.environ.get("CUDIAG_SCENARIO_NAMESPACE") == "1":
        return
    unshare = ["unshare", "--mount"] if os.geteuid() == 0 else ["unshare", "--map-root-user", "--mount"]
    if subprocess.run([*unshare, "true"], capture_output=True).returncode != 0:
        raise CannotRun("no mount namespace may be made here (needs root, or user namespaces)")
    steps = " && ".join(" ".join(map(str, m)) for m in [*mounts, ["exec", '"$@"']])
    sys.stdout.flush()
    os.environ["CUDIAG_SCENARIO_NAMESPACE"] = "1"
    os.execvp(unshare[0], [*unshare, "sh", "-c", steps, "sh", sys.executable, *sys.argv])


def mount_point(name):
    """An empty directory to mount something on; the same one before and after in_mount_namespace."""
    user = os.environ.setdefault("CUDIAG_SCENARIO_USER", str(os.getuid()))
    directory = Path(tempfile.gettempdir()) / f"cudiag-{name}-{user}"
    directory.mkdir(exist_ok=True)
    return directory


# Directories whose emptying would break the system itself: a toolkit installed there cannot be hidden.
_SYSTEM = re.compile(r"^(/usr)?/lib(32|64)?(/x86_64-linux-gnu|/aarch64-linux-gnu)?$")


def ldconfig():
    return shutil.which("ldconfig") or "/sbin/ldconfig"   # an ordinary user's PATH may lack sbin


def _toolkit_libraries():
    """The libraries of a CUDA toolkit that ld.so.cache finds on this machine."""
    cache = subprocess.run([ldconfig(), "-p"], capture_output=True, text=True).stdout
    return re.findall(r"lib(?:cudart|cublas|cusparse|cupti|nccl|nvJitLink|nvrtc)\.so\S* .*=> (\S+)", cache)


def toolkit_directories():
    """Where ld.so.cache finds them."""
    files = _toolkit_libraries()
    return sorted({os.path.dirname(f) for f in files} | {os.path.dirname(os.path.realpath(f)) for f in files})


def toolkit_homes():
    """The toolkits that are installed on this machine."""
    return sorted({str(d.resolve()) for parent in ("/usr/local", "/opt") for d in Path(parent).glob("cuda*") if d.is_dir()})


def _whole_toolkits():
    """The directories to hide, so that programs, headers and libraries of every toolkit are out of sight; links may dangle."""
    homes = toolkit_homes()
    inside = lambda file: any(os.path.realpath(file).startswith(f"{home}/") for home in homes)
    searched = subprocess.run(["g++", "-E", "-v", "-x", "c++", "/dev/null"], capture_output=True, text=True).stderr
    files = [f"{d}/cuda_runtime.h" for d in re.findall(r"^ (/\S+)$", searched, re.MULTILINE)]
    for file in filter(os.path.exists, files):
        if not inside(file):
            raise CannotRun(f"CUDA's headers are installed among the system's: {file}")
    return [*homes, *sorted({os.path.dirname(f) for f in _toolkit_libraries() if not inside(f)})]


def hide_toolkit(*mounts, compiler=False):
    """The story goes on where no CUDA toolkit is on the loader's path, as on a machine that never had one.

    compiler: nor are its programs, its headers, and what it has for the linker. mounts: more to do in that namespace.
    """
    directories = _whole_toolkits() if compiler else toolkit_directories()
    if any(_SYSTEM.match(d) for d in directories):
        raise CannotRun(f"a CUDA toolkit is installed among the system's libraries: {', '.join(directories)}")
    if not directories and not mounts:
        return
    cache = mount_point("caches") / f"ld.so.cache.{os.getpid()}"
    binds = [["mount", "--bind", mount_point("empty"), d] for d in directories if os.path.isdir(d)]
    in_mount_namespace(*mounts, *binds,
                       [ldconfig(), "-X", "-C", cache, ">/dev/null", "2>&1"],
                       ["mount", "--bind", cache, "/etc/ld.so.cache"],
                       ["rm", "-f", cache])


def hide_toolkit_programs_and_headers(default_home=True):
    """What programs need to run stays, as torch needs cuBLAS and others of it; nothing can be built with the toolkit.

    default_home=False: nor is there a /usr/local/cuda, and no nvcc beside it.
    """
    empty, local = mount_point("empty"), mount_point("local")
    mounts = [["mount", "--bind", empty, f"{home}/{name}"]
              for home in toolkit_homes() for name in ("bin", "include") if os.path.isdir(f"{home}/{name}")]
    if not default_home and os.path.lexists("/usr/local/cuda"):
        mounts += [["mount", "--rbind", "/usr/local", local], ["mount", "-t", "tmpfs", "tmpfs", "/usr/local"]]
        mounts += [["ln", "-s", local / n, f"/usr/local/{n}"] for n in os.listdir("/usr/local") if n not in ("cuda", "bin")]
        mounts += [["mkdir", "/usr/local/bin"], ["ln", "-s", f"{local}/bin/[!n]*", "/usr/local/bin"]]
    in_mount_namespace(*mounts)


def without_root_privileges():
    """For preexec_fn: root loses the right to read and write past permission bits, and stays root otherwise."""
    libc = ctypes.CDLL(None)
    for capability in (1, 2):          # CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH
        libc.prctl(24, capability, 0, 0, 0)   # PR_CAPBSET_DROP: takes effect at the exec that follows


def control_group(controller, limit):
    """A cgroup of our own, "memory" (bytes) or "pids" (count), version 1 or 2; gives its directory."""
    if os.geteuid() != 0:
        raise CannotRun("no cgroup may be made here (needs root)")
    mounts = [line.split() for line in Path("/proc/self/mounts").read_text().splitlines()]
    first = [m[1] for m in mounts if m[2] == "cgroup" and controller in m[3].split(",")]
    second = [m[1] for m in mounts if m[2] == "cgroup2"]
    own = [line.split(":", 2)[2] for line in Path("/proc/self/cgroup").read_text().splitlines()
           if (controller in line.split(":")[1].split(",") if first else line.startswith("0::"))]
    try:
        top = Path((first or second)[0])
        # Version 2 lets no group with processes in it have children: ours is made at the top.
        parent = top / own[0].lstrip("/") if first and (top / own[0].lstrip("/")).is_dir() else top
        group = parent / f"cudiag-{os.getpid()}"
        group.mkdir()
        atexit.register(leave, group)
        settings = {("memory", True): {"memory.limit_in_bytes": limit, "memory.memsw.limit_in_bytes": limit},
                    ("memory", False): {"memory.max": limit, "memory.swap.max": 0},
                    ("pids", True): {"pids.max": limit}, ("pids", False): {"pids.max": limit}}[controller, bool(first)]
        for number, (file, value) in enumerate(settings.items()):
            if number == 0 or (group / file).exists():      # a kernel without swap accounting lacks the second
                (group / file).write_text(str(value))
    except (OSError, IndexError) as error:
        raise CannotRun(f"no cgroup may be made here: {error}") from None
    return group


def leave(group):
    """Removes a cgroup whose programs have ended."""
    for _ in range(50):
        try:
            return group.rmdir()
        except OSError:
            time.sleep(0.1)      # what was killed in it is still ending


def joins(group):
    """For preexec_fn: the program runs in that cgroup, and all that it starts."""
    return lambda: (group / "cgroup.procs").write_text(str(os.getpid()))
