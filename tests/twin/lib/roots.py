"""Minimal Debian roots, made once by debootstrap and kept below the build directory, and tries in them that leave no trace.

    with Try("bullseye") as inside:
        inside.run("python3", "--version")         a Result
        inside.changes()                           what the try has written so far

A try sees an overlay over the root: what it writes is gone with it, unless a directory is given that keeps it as a layer for others.
"""

import ctypes
import fcntl

from twin import *

PACKAGES = ["python3-venv"]
CLONE_NEWNS = 0x00020000


def debian_root(suite):
    """The root's directory; ends the story as "cannot run here" where none can be made."""
    need("debootstrap", "chroot")
    if os.getuid() != 0:
        cannot_run_here("not root: debootstrap and chroot need it")
    cache = Path(os.environ.get("CUDIAG_CACHE", tempfile.gettempdir()))
    cache.mkdir(parents=True, exist_ok=True)
    root, mark = cache / suite, cache / suite / ".complete"
    with open(cache / f"{suite}.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not mark.exists() or mark.read_text().split() != PACKAGES:
            shutil.rmtree(root, ignore_errors=True)
            _make(root, suite)
            mark.write_text(" ".join(PACKAGES))
    return root


def _make(root, suite):
    files = [Path("/etc/apt/sources.list"), *Path("/etc/apt/sources.list.d").glob("*")]
    sources = "\n".join(path.read_text() for path in files if path.is_file())
    mirrors = re.findall(r"^(?:deb(?:\s+\[.*?\])?\s+|URIs:\s*)(https?://\S*?/debian)/?\s", sources + "\n", re.M)
    for mirror in dict.fromkeys([*mirrors, "http://deb.debian.org/debian"]):
        made = subprocess.run(["debootstrap", "--variant=minbase", f"--include={','.join(PACKAGES)}", suite, str(root), mirror],
                              capture_output=True, text=True, timeout=800)
        if made.returncode == 0:
            return
        shutil.rmtree(root, ignore_errors=True)
    cannot_run_here(f"debootstrap cannot make a {suite} root: {(made.stderr or made.stdout).strip().splitlines()[-1:]}")


def _mount(*words):
    done = subprocess.run(["mount", *map(str, words)], capture_output=True, text=True)
    if done.returncode != 0:
        cannot_run_here(f"mount {' '.join(map(str, words))}: {done.stderr.strip()}")


class Try:
    """A root of that Debian to do as one likes in. The mounts are this process's own, and end with it."""

    def __init__(self, suite, layers=(), upper=None):
        """layers: what lies over that Debian, the lowest first. upper: the empty directory that keeps what is written, on a disk."""
        lower = debian_root(suite)
        if ctypes.CDLL(None, use_errno=True).unshare(CLONE_NEWNS) != 0:
            cannot_run_here("no mount namespace may be made here")
        _mount("--make-rprivate", "/")
        self._place = Path(tempfile.mkdtemp(dir=upper and upper.parent))
        if upper is None:
            _mount("-t", "tmpfs", "tmpfs", self._place)
        self._upper = upper or self._place / "upper"
        work, self.root = self._place / "work", self._place / "root"
        for directory in (self._upper, work, self.root):
            directory.mkdir(exist_ok=True)
        # No features of this kernel's choice, so that a layer is files, whiteouts and opaque directories.
        lowers = ":".join(map(str, [*reversed(layers), lower]))
        _mount("-t", "overlay", "overlay", "-o", f"redirect_dir=off,metacopy=off,lowerdir={lowers},upperdir={self._upper},workdir={work}",
               self.root)
        _mount("-t", "proc", "proc", self.root / "proc")
        _mount("--rbind", "/dev", self.root / "dev")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        subprocess.run(["umount", "-R", "-l", str(self.root)])
        if os.path.ismount(self.root) or any(self.root.iterdir()):
            fail(f"{self.root} is still mounted: not removed")   # /dev of this machine lies below it
        if os.path.ismount(self._place):
            subprocess.run(["umount", "-l", str(self._place)])
        shutil.rmtree(self._place)

    def put(self, file, at="/root"):
        """Copies a file there; its path inside."""
        shutil.copy(file, self.root / at.lstrip("/"))
        return f"{at}/{Path(file).name}"

    def network(self):
        """Lets apt and pip reach from inside what they reach from here; gives the variables to run them with."""
        for file in ("/etc/resolv.conf", "/etc/pip.conf"):
            if os.path.exists(file):
                shutil.copy(file, self.root / file[1:])
        variables = {name: os.environ[name] for name in ("http_proxy", "https_proxy", "PIP_INDEX_URL") if name in os.environ}
        if os.environ.get("PIP_CERT"):
            shutil.copy(os.environ["PIP_CERT"], self.root / "etc/pip-cert.pem")
            variables["PIP_CERT"] = "/etc/pip-cert.pem"
        return variables

    def run(self, *command, limit_s=LIMIT_S, contained=False, **variables):
        """Runs it inside, with no variables but these and the usual ones. contained: as process 1, so that all it starts ends with it."""
        environment = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "HOME": "/root", "LC_ALL": "C.UTF-8",
                       "DEBIAN_FRONTEND": "noninteractive"} | variables
        # Given inside: a preload is for the command, not for chroot.
        words = [shutil.which("chroot"), str(self.root), "/usr/bin/env", "-i", *(f"{k}={v}" for k, v in environment.items())]
        if contained:
            words = ["unshare", "--pid", "--fork", "--kill-child", f"--mount-proc={self.root}/proc", *words]
        done = subprocess.run([*words, *map(str, command)], capture_output=True, text=True, timeout=limit_s, cwd="/")
        return Result(done.returncode, done.stdout, done.stderr)

    def must(self, *command, **options):
        """The same, for what has to succeed: its stdout."""
        done = self.run(*command, **options)
        if done.status != 0:
            fail(f"{' '.join(map(str, command))}: {done.status}\n{done.stdout}{done.stderr}")
        return done.stdout

    def changes(self):
        """Paths of the files that the tries have made, changed or removed."""
        return sorted("/" + str(path.relative_to(self._upper)) for path in self._upper.rglob("*") if not path.is_dir())
