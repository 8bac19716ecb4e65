"""The packages that scripts/package makes of the build under test, and what each must do where it is installed."""

from twin import *

SCRIPT = TESTS.parent / "scripts" / "package"
DIST = Path(os.environ.get("CUDIAG_CACHE", tempfile.gettempdir())).parent / "dist"
EPOCH = "1760000000"

# As a fine-tune that loads an extension whose CUDA is not there.
LOADS = 'import ctypes\nctypes.CDLL("libcudart.so.12")\n'


def make(*kinds, to, built=BIN):
    done = subprocess.run([SCRIPT, *kinds, "--built", built], env=os.environ | {"CUDIAG_DIST": str(to), "SOURCE_DATE_EPOCH": EPOCH},
                          capture_output=True, text=True, timeout=600)
    if done.returncode != 0:
        fail(f"scripts/package {' '.join(kinds)}: {done.returncode}\n{done.stdout}{done.stderr}")


def package(extension):
    """The package whose name ends so."""
    found = [path for path in DIST.iterdir() if path.name.endswith(extension)]
    if len(found) != 1:
        fail(f"{len(found)} packages end with {extension}: the story are_made_of_the_same_bytes makes them")
    return found[0]


def explains(run):
    """That run of LOADS failed, and was told why in place."""
    assert run.status == 1 and "OSError: libcudart.so.12: cannot open shared object file" in run.stderr, run
    assert "cudiag: error loader-missing-library\n" in run.stderr and "ERROR: ld.so" not in run.stderr, run
    assert "pip install nvidia-cuda-runtime-cu12" in run.stderr, run


def deb_works(inside):
    """Installed, the bare name is enough; purged, nothing of it is left."""
    file = inside.put(package(".deb"))
    inside.must("dpkg", "-i", file)
    assert inside.must("cudiag", "lib").startswith("/usr/lib/"), inside.must("cudiag", "lib")
    explains(inside.run("python3", "-c", LOADS, LD_PRELOAD="libcudiag.so"))
    # In every process of a shell script, without a complaint.
    both = [inside.run("sh", "-c", "true; python3 -c 'print(1)'; exit 3", **preload) for preload in ({}, {"LD_PRELOAD": "libcudiag.so"})]
    assert both[0] == both[1] and both[0].status == 3, both
    assert "loader-missing-library" in inside.run("cudiag", "report").stdout
    assert inside.run("cudiag", "doctor").status == 1   # no torch there
    listed = inside.must("dpkg", "-L", "cudiag").split()
    inside.must("dpkg", "--purge", "cudiag")
    left = [path for path in listed if (inside.root / path.lstrip("/")).is_file()]
    assert len(listed) > 20 and not left and not named_after_us(inside), (left, named_after_us(inside))


def named_after_us(inside):
    """Files of the system that bear our name; a removed one is among the changes too."""
    return [path for path in inside.changes() if "cudiag" in path and path.startswith(("/usr", "/etc", "/var/lib/dpkg/info"))
            and os.path.lexists(inside.root / path.lstrip("/"))]


def wheel_works(inside):
    """In a virtual environment: the command, the library, python -m; uninstalled, the environment is as it was."""
    file = inside.put(package(".whl"))
    inside.must("python3", "-m", "venv", "/venv")
    before = set(inside.changes())
    inside.must("/venv/bin/pip", "install", "--no-index", "--no-compile", file)
    library = inside.must("/venv/bin/cudiag", "lib").strip()
    assert library == "/venv/lib/libcudiag.so" and inside.must("/venv/bin/python", "-m", "cudiag", "lib").strip() == library
    explains(inside.run("/venv/bin/python", "-c", LOADS, LD_PRELOAD=library))
    explains(inside.run("/venv/bin/cudiag", "run", "--", "/venv/bin/python", "-c", LOADS))
    # python -m is about the Python that runs it, unless it is told another.
    for words, python in (["doctor", "--json"], "/venv/bin/python"), (["doctor", "--json", "--python=/usr/bin/python3"], "/usr/bin/python3"):
        told = json.loads(inside.run("/venv/bin/python", "-m", "cudiag", *words).stdout)
        assert told["python"]["path"] == python, told["python"]
    silent = "import sys; before = set(sys.modules); import cudiag; print(sorted(set(sys.modules) - before))"
    assert inside.must("/venv/bin/python", "-c", silent) == "['cudiag']\n"
    inside.must("/venv/bin/pip", "uninstall", "-y", "cudiag")
    left = {path for path in set(inside.changes()) - before if path.startswith("/venv") and "__pycache__" not in path}
    assert not left, left


def tar_works(inside):
    """Unpacked in one place and moved to another, with its modulefile read as Environment Modules read it."""
    file = inside.put(package(".tar.gz"))
    inside.must("tar", "-C", "/opt", "-xzf", file)
    inside.must("sh", "-c", "mkdir -p /apps && mv /opt/cudiag-* /apps/cudiag")
    library = inside.must("/apps/cudiag/bin/cudiag", "lib").strip()
    assert library == "/apps/cudiag/lib/libcudiag.so"
    explains(inside.run("python3", "-c", LOADS, LD_PRELOAD=library))
