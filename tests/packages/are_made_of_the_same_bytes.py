"""scripts/package makes a wheel, a .deb and a tar of what is built; made again, wheel and tar have the same bytes."""
import hashlib

from packages import *

shutil.rmtree(DIST, ignore_errors=True)
make("all", to=DIST)
version = subprocess.run([BIN / "cudiag", "--version"], capture_output=True, text=True).stdout.split()[1]
names = sorted(path.name for path in DIST.iterdir())
assert all(version in name for name in names), names
assert len(names) == 3 and "manylinux_2_17" in package("whl").name, names

with tempfile.TemporaryDirectory() as again:
    # Files of another age, made by another mask, are packed as the same bytes.
    copies = Path(again) / "bin"
    shutil.copytree(BIN, copies)
    for file in copies.iterdir():
        os.utime(file, (1, 1))
    os.umask(0o077)
    make("tar", "wheel", to=Path(again) / "dist", built=copies)
    for path in (Path(again) / "dist").iterdir():
        digests = [hashlib.sha256(file.read_bytes()).hexdigest() for file in (path, DIST / path.name)]
        assert digests[0] == digests[1], path.name

for words, says in (["rpm"], "unknown word rpm"), (["--built", "/nowhere"], "no cudiag and libcudiag.so in /nowhere"):
    done = subprocess.run([SCRIPT, *words], capture_output=True, text=True)
    assert done.returncode in (2, 3) and says in done.stderr, done
