"""CPython's frames and last exception, by every interpreter here (3.8 and later): the lines of the program, its chain of
exceptions, and its own pending exception untouched. Without the GIL, no frames are asked for
(frames_without_the_gil.py)."""
from twin import *

bed = Bed()
if MACHINE:
    cannot_run_here("no interpreter for this machine")
script = bed.root / "story.py"
script.write_text('''\
import _ctypes, sys

def inner(name):
    return _ctypes.dlopen(name, 2)          # line 4

class Own(Exception):
    def __str__(self):
        print("the shim ran __str__", file=sys.stderr)
        return "never"

def outer():
    try:
        inner("/absent/first.so")           # line 13
    except OSError as error:
        raise ImportError("first: \\u00e9\\u4e16") from error

def handled():
    try:
        raise KeyError("kept")
    except KeyError:
        try:
            inner("/absent/second.so")      # line 22
        except OSError:
            pass
        print(repr(sys.exc_info()[1]))

handled()
if len(sys.argv) > 1:
    sys.exit(int(sys.argv[1]))
try:
    outer()                                 # line 31
except ImportError:
    raise Own(7)                            # line 33
''')
threaded = bed.root / "threaded.py"
threaded.write_text('''\
import ctypes, sys, threading
own = ctypes.CDLL(sys.argv[1])
own.open_without_gil.argtypes = [ctypes.c_char_p]
threads = [threading.Thread(target=own.open_without_gil, args=(b"/absent/no-gil-%d.so" % i,)) for i in range(8)]
[t.start() for t in threads]
for i in range(20000): "".join(map(str, range(8)))     # the main thread holds the GIL meanwhile
[t.join() for t in threads]
sys.exit(3)
''')
library = bed.shared("libnogil.so", "without_gil.c", "-ldl")

versions = {}
for python in [sys.executable, *sorted(Path.home().glob(".pyenv/versions/*/bin/python3")), *map(str, Path("/usr/bin").glob("python3.[0-9]*"))]:
    asked = subprocess.run([str(python), "-c", "import sys, _ctypes; print('%d.%d.%d' % sys.version_info[:3])"], capture_output=True, text=True)
    version = asked.stdout.strip()
    if asked.returncode == 0 and tuple(map(int, version.split("."))) >= (3, 8):
        versions.setdefault(version, python)
if not versions:
    cannot_run_here("no CPython of 3.8 or later with ctypes")

for version, python in sorted(versions.items()):
    new = tuple(map(int, version.split(".")))
    both = bed.twin(python, script, same=lambda text: text)
    first, second = sorted(both.recorded("dlopen_failed"), key=lambda entry: entry["name"])

    def frames(entry):
        return list(zip(map(os.path.basename, entry.all("python_file")), entry.all("python_line"), entry.all("python_function")))

    assert frames(first) == [("story.py", 4, "inner"), ("story.py", 13, "outer"), ("story.py", 31, "<module>")], (version, frames(first))
    assert frames(second) == [("story.py", 4, "inner"), ("story.py", 22, "handled"), ("story.py", 27, "<module>")], (version, frames(second))
    chain = both.recorded("python_exception")
    assert [(e["type"], e["chain"]) for e in chain] == [("Own", 0), ("ImportError", 1), ("OSError", 2)], (version, chain)
    assert chain[0]["text"] in ("", None) and chain[1]["text"] == "first: \u00e9\u4e16", (version, chain)
    assert chain[2]["text"].startswith("/absent/first.so: cannot open"), (version, chain)
    assert frames(chain[0]) == [("story.py", 33, "<module>")] and frames(chain[2])[0] == ("story.py", 4, "inner"), (version, chain)
    assert "KeyError('kept')" in both.under.stdout, both.under
    # An end without an exception has none to tell, and a program that puts SIGINT back itself is not asked.
    assert bed.twin(python, script, "3").recorded("python_exception") == []
    both = bed.twin(python, "-c", "import _ctypes, signal, sys\ntry: _ctypes.dlopen('/absent/x.so', 2)\nexcept OSError as e: sys.last_value = sys.last_exc = e\n"
                    "signal.signal(signal.SIGINT, signal.SIG_DFL); del sys.last_value, sys.last_exc; sys.exit(3)")
    assert len(both.recorded("dlopen_failed")) == 1 and both.recorded("python_exception") == [], (version, both.recordings())

    both = bed.twin(python, threaded, library)
    entries = both.recorded("dlopen_failed")
    assert sorted(e["name"] for e in entries) == [f"/absent/no-gil-{i}.so" for i in range(8)], (version, entries)
    assert all(frames(entry) == [] for entry in entries), (version, [frames(entry) for entry in entries])
print("CPython", ", ".join(versions), "" if any(v.startswith("3.14") for v in versions) else "(3.14 not here, not tested)")
