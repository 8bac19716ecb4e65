"""The command finds the library and the library the command, in each layout that an installation has; and not elsewhere."""
from packages import *

bed = Path(tempfile.mkdtemp())
atexit.register(shutil.rmtree, bed, ignore_errors=True)


def lay(name, command, library):
    """A copy of both at these places below a directory of that name."""
    for source, place in ((BIN / "cudiag", command), (BIN / "libcudiag.so", library)):
        (bed / name / place).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(source, bed / name / place)
    return bed / name / command, bed / name / library


def said_under(library):
    environment = {"PATH": os.environ["PATH"], "LD_PRELOAD": str(library), "CUDIAG_DIR": str(bed / "runs")}
    return subprocess.run([sys.executable, "-c", LOADS], env=environment, capture_output=True, text=True, timeout=LIMIT_S).stderr


def path_told_by(command):
    done = subprocess.run([command, "lib"], capture_output=True, text=True)
    return done.stdout.strip() if done.returncode == 0 else done.stderr


EXPLAINED, LEFT_ALONE = "cudiag: error loader-missing-library", "cudiag: recorded in "
triplet = f"{os.uname().machine}-linux-gnu"
for name, library in (("beside", "bin"), ("prefix", "lib"), ("prefix64", "lib64"), ("multiarch", f"lib/{triplet}")):
    command, library = lay(name, "bin/cudiag", f"{library}/libcudiag.so")
    assert path_told_by(command) == str(library), (name, path_told_by(command))
    assert EXPLAINED in said_under(library), (name, said_under(library))

# By a link, as pipx and update-alternatives make it.
(bed / "link").symlink_to(bed / "prefix/bin/cudiag")
assert path_told_by(bed / "link") == str(bed / "prefix/lib/libcudiag.so")
(bed / "link.so").symlink_to(bed / "prefix/lib/libcudiag.so")
assert EXPLAINED in said_under(bed / "link.so")

# A directory of the command's name is no command, and somebody else's prefix is not ours.
command, library = lay("folder", "bin/cudiag", "lib/libcudiag.so")
(bed / "folder/lib/cudiag").mkdir()
assert EXPLAINED in said_under(library)
for name, place in (("opt", "lib/plugins/deep/libcudiag.so"), ("plain", "libcudiag.so"), ("far", "opt/x/libcudiag.so")):
    command, library = lay(name, "bin/cudiag", place)
    assert LEFT_ALONE in said_under(library), (name, said_under(library))
    assert "libcudiag.so is not beside this command" in path_told_by(command), name

# cmake --install, from the build under test.
done = subprocess.run(["cmake", "--install", BIN.parent, "--prefix", bed / "installed"], capture_output=True, text=True)
assert done.returncode == 0, done
library = Path(path_told_by(bed / "installed/bin/cudiag"))
assert library.is_relative_to(bed / "installed") and EXPLAINED in said_under(library)
holds = {str(path.relative_to(bed / "installed")) for path in (bed / "installed").rglob("*")}
for file in ("share/man/man1/cudiag.1.gz", "share/bash-completion/completions/cudiag", "share/zsh/site-functions/_cudiag",
             "share/fish/vendor_completions.d/cudiag.fish", "share/doc/cudiag/README.md", "share/doc/cudiag/copyright",
             "share/doc/cudiag/docs/findings.md", "share/doc/cudiag/examples/finetune.py"):
    assert file in holds, file
