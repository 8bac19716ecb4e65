"""What this machine can do for a scenario: programs, namespaces, and a CUDA toolkit that must be out of sight."""

import ctypes
import os
import re
import shutil
import subprocess
import sys
import tempfile
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


def toolkit_directories():
    """Where ld.so.cache finds libraries of a CUDA toolkit on this machine."""
    cache = subprocess.run([ldconfig(), "-p"], capture_output=True, text=True).stdout
    files = re.findall(r"lib(?:cudart|cublas|cusparse|cupti|nccl|nvJitLink|nvrtc)\.so\S* .*=> (\S+)", cache)
    return sorted({os.path.dirname(f) for f in files} | {os.path.dirname(os.path.realpath(f)) for f in files})


def hide_toolkit():
    """The story goes on where no CUDA toolkit is on the loader's path, as on a machine that never had one."""
    directories = toolkit_directories()
    if not directories:
        return
    if any(_SYSTEM.match(d) for d in directories):
        raise CannotRun(f"a CUDA toolkit is installed among the system's libraries: {', '.join(directories)}")
    cache = mount_point("caches") / f"ld.so.cache.{os.getpid()}"
    binds = [["mount", "--bind", mount_point("empty"), d] for d in directories if os.path.isdir(d)]
    in_mount_namespace(*binds,
                       [ldconfig(), "-X", "-C", cache, ">/dev/null", "2>&1"],
                       ["mount", "--bind", cache, "/etc/ld.so.cache"],
                       ["rm", "-f", cache])


def without_root_privileges():
    """For preexec_fn: root loses the right to read and write past permission bits, and stays root otherwise."""
    libc = ctypes.CDLL(None)
    for capability in (1, 2):          # CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH
        libc.prctl(24, capability, 0, 0, 0)   # PR_CAPBSET_DROP: takes effect at the exec that follows
