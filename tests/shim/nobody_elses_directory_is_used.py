"""Where recordings go, with which modes, and that in /tmp no link is followed and no directory of somebody else's is taken."""
import pwd
import stat

from twin import *

if MACHINE:
    cannot_run_here("qemu passes the environment of its own")
bed = Bed()
program = bed.program("ends.c")
os.chmod(bed.root, 0o755)
uid = next((entry.pw_uid for entry in pwd.getpwall() if entry.pw_name == "nobody"), None)
if os.getuid() != 0 or uid is None:
    cannot_run_here("not root, or no user nobody")
shared = Path(f"/tmp/cudiag-{uid}")
if shared.exists():
    cannot_run_here(f"{shared} is in use")


def as_nobody():
    os.setgroups([])
    os.setgid(uid)
    os.setuid(uid)


def end(env, **options):
    ended = subprocess.run([program, "/absent/probe.so", "exit", "7"], capture_output=True, text=True, cwd="/", timeout=LIMIT_S,
                           env={"LD_PRELOAD": str(bed.library), "CUDIAG_PRINT": "off", **env}, **options)
    assert ended.returncode == 7 and ended.stderr == "", ended


def records(directory):
    return sorted(str(path.relative_to(directory)) for path in directory.rglob("*.rec"))


shutil.copy(bed.library, bed.root / "libcudiag.so")
os.chmod(bed.root / "libcudiag.so", 0o755)
bed.library = bed.root / "libcudiag.so"
for env, where in (({"CUDIAG_DIR": f"{bed.root}/a/b"}, "a/b"), ({"XDG_STATE_HOME": f"{bed.root}/state"}, "state/cudiag/runs"),
                   ({"HOME": f"{bed.root}/home"}, "home/.local/state/cudiag/runs"),
                   ({"HOME": f"{bed.root}/home2", "XDG_STATE_HOME": "relative"}, "home2/.local/state/cudiag/runs"),
                   ({"CUDIAG_DIR": f"{bed.root}/first", "HOME": f"{bed.root}/never"}, "first")):
    end(env)
    record, = (bed.root / where).glob("*/*.rec")
    assert stat.S_IMODE(record.stat().st_mode) == 0o600 and stat.S_IMODE(record.parent.stat().st_mode) == 0o700, record
    assert stat.S_IMODE((bed.root / where).stat().st_mode) == 0o700, where
assert not (bed.root / "never").exists()

trap = bed.root / "trap"
try:
    end({}, preexec_fn=as_nobody)
    assert len(records(shared)) == 1 and shared.stat().st_uid == uid and stat.S_IMODE(shared.stat().st_mode) == 0o700, shared
    shutil.rmtree(shared)
    for home in ("/nonexistent", str(bed.root / "home"), "/proc/self"):      # one that is not, one of root's, one that nothing can be made in
        end({"HOME": home}, preexec_fn=as_nobody)
        assert len(records(shared)) == 1, home
        shutil.rmtree(shared)
    end({"XDG_STATE_HOME": "/nonexistent/state", "HOME": "/"}, preexec_fn=as_nobody)
    assert len(records(shared)) == 1
    shutil.rmtree(shared)
    trap.mkdir(mode=0o700)
    os.chown(trap, uid, uid)                                      # even one of its own: somebody else chose it
    shared.symlink_to(trap)                                       # a link where the directory should be
    end({}, preexec_fn=as_nobody)
    assert list(trap.iterdir()) == [], list(trap.iterdir())
    shared.unlink()
    shared.mkdir(mode=0o777)                                      # a directory of root's, open to all
    os.chmod(shared, 0o777)
    end({}, preexec_fn=as_nobody)
    assert list(shared.iterdir()) == [], list(shared.iterdir())
    shared.rmdir()
    shared.mkdir(mode=0o700)                                      # its own, with a link inside
    os.chown(shared, uid, uid)
    (shared / "runs").symlink_to(trap)
    end({}, preexec_fn=as_nobody)
    assert list(trap.iterdir()) == [], list(trap.iterdir())
finally:
    if shared.is_symlink():
        shared.unlink()
    shutil.rmtree(shared, ignore_errors=True)
