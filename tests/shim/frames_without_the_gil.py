"""CPython's frames of a thread that has let go of the GIL, read from its memory, by every interpreter here (3.8 and later): the same
that sys._getframe tells of the same call, in every kind of frame; none where they are not known for sure."""
import fake_driver
from twin import *

bed = Bed()
if MACHINE:
    cannot_run_here("no interpreter for this machine")
library = fake_driver.build(bed)
calls = bed.shared("libcalls.so", "calls_python_back.c", "-pthread")

# Each failing call has a name of its own, by which it is found again; of one place few are noted.
NAMES = [name for name, types in fake_driver.rows() if types and name not in (*fake_driver.RESOLVERS, "cuDriverGetVersion", "cuInit")
         and "KernelEx" not in name]  # whose first parameter is read
PRELUDE = '''\
import ctypes, json, os, sys
cuda, helper = ctypes.CDLL(sys.argv[1]), ctypes.CDLL(sys.argv[2])
held = ctypes.PyDLL(sys.argv[1])
names = sys.argv[3].split(",")
told = {}

def fails(label):
    """The next function that fails, and what its frames should be: those of our caller, which calls it on the same line."""
    name = names.pop()
    frame, frames = sys._getframe(1), []
    while frame is not None and len(frames) < 24:
        code = frame.f_code
        frames.append([code.co_filename, frame.f_lineno, getattr(code, "co_qualname", code.co_name)])
        frame = frame.f_back
    told[label] = [name, frames]
    return getattr(cuda, name)

def done(status=3):
    with open("told.json", "w") as file:
        json.dump(told, file)
    sys.exit(status)
'''
KINDS = PRELUDE + '''
import asyncio, threading

def plain():
    return fails("plain")(1)

class Own:
    @property
    def of_class(self):
        return (lambda: [fails("class, lambda, comprehension")(1) for _ in range(1)])()

def generator():
    yield from (fails("generator")(1) for _ in range(1))

async def inner():
    await asyncio.sleep(0)
    return fails("async")(1)

async def outer():
    return await asyncio.gather(inner())

def recurse(depth):
    if depth > 0:
        return recurse(depth - 1)
    return fails("recursion")(1)

@ctypes.CFUNCTYPE(ctypes.c_int)
def from_c():
    return fails("callback")(1)

@ctypes.CFUNCTYPE(ctypes.c_int)
def holds():
    # Calls the driver with the GIL held, from within C that was called without.
    held.cuCtxSynchronize()
    return fails("callback in callback")(1) + helper.call_back(from_c)

def thread():
    fails("thread")(1)

def in_exception():
    try:
        raise KeyError("kept")
    except KeyError:
        fails("handler")(1)
        print(repr(sys.exc_info()[1]))
    finally:
        fails("finally")(1)
    with open(os.devnull):
        fails("with")(1)

def sorts():
    return sorted([2, 1], key=lambda x: fails("key %d" % x)(x))

def long_one():
    x = 0
LONG    while True:
        x = (x +
             1) if x else 7

        if x > 9:
            fails("long")(1); break
        elif x == 8:
            fails("loop")(1)
    return x

plain()
Own().of_class
list(generator())
asyncio.run(outer())
recurse(200)
helper.call_back(from_c)
helper.call_back(holds)
one = threading.Thread(target=thread); one.start(); one.join()
in_exception()
sorts()
long_one()
for number, name in enumerate(("/tmp/\\u00e9t\\u00e9.py", "/tmp/\\u4e16\\u754c\\u20ac.py", "/tmp/\\U0001f600\\u00fc.py", "/" + 900 * "\\u4e16" + ".py")):
    source = "\\n" * (70000 * number) + "def \\u00fcber\\u4e16():\\n    fails('file %d')(1)\\n\\u00fcber\\u4e16()\\n" % number
    exec(compile(source, name, "exec"))
done()
'''
LONG = "".join(f"    x = x + {i} if x else 0\n" + "\n" * (i % 300) for i in range(700))


def interpreters():
    for python in [sys.executable, *sorted(Path.home().glob(".pyenv/versions/*/bin/python3")), *map(str, Path("/usr/bin").glob("python3.[0-9]*"))]:
        asked = subprocess.run([str(python), "-c", "import sys, _ctypes; print('%d.%d.%d' % sys.version_info[:3])"], capture_output=True, text=True)
        version = asked.stdout.strip()
        if asked.returncode == 0 and tuple(map(int, version.split("."))) >= (3, 8):
            yield version, python


def frames(entry):
    return [list(frame) for frame in zip(entry.all("python_file"), entry.all("python_line"), entry.all("python_function"))]


def run(python, text, name="story.py", **options):
    script = bed.root / name
    script.write_text(text)
    environment = fake_driver.environment({name: 1 for name in [*NAMES, "cuCtxSynchronize"]}, FAKE_DRIVER_QUIET=1, **options.pop("set", {}))
    both = bed.twin(python, script, library, calls, ",".join(NAMES), env=environment, **options)
    told = json.loads((bed.root / "told.json").read_text())
    return told, {entry["name"]: entry for entry in both.recorded("cuda_call_failed")}


versions = dict(interpreters())
if not versions:
    cannot_run_here("no CPython of 3.8 or later with ctypes")
for version, python in sorted(versions.items()):
    known = tuple(map(int, version.split(".")[:2])) <= (3, 14)
    told, recorded = run(python, KINDS.replace("LONG", LONG))
    assert len(told) > 18, told
    for label, (name, expected) in told.items():
        if label == "file 3":       # a name too long for what is kept
            expected = [["?", *frame[1:]] if len(frame[0]) > 600 else frame for frame in expected]
        assert frames(recorded[name]) == (expected if known else []), (version, label, frames(recorded[name]), expected)
    synchronized = frames(recorded["cuCtxSynchronize"])
    assert [frame[2] for frame in synchronized] == ["holds", "<module>"], (version, synchronized)

    # A thread that has no Python, and what comes when the interpreter is being torn down: no frames.
    told, recorded = run(python, PRELUDE + '''
import threading
def later():
    helper.call_after(fails("at the end"), 300000)
threading.Thread(target=later, daemon=True).start()
class AtEnd:
    def __init__(self):
        self.wait, self.fails = helper.wait_for, fails("destructor")
    def __del__(self):
        self.fails(1)
        self.wait(600000)
sys.modules['other'] = type(sys)('other')      # goes with the modules, though the thread keeps this one
sys.modules['other'].end = AtEnd()
helper.call_in_thread(fails("no Python"))
fails("known")(1)
while "at the end" not in told: pass
done()
''')
    for label in ("at the end", "destructor", "no Python"):
        assert frames(recorded[told[label][0]]) == [], (version, label, frames(recorded[told[label][0]]))
    assert frames(recorded[told["known"][0]]) == told["known"][1], version

    # While there are sub-interpreters the thread's own state need not be the one that runs: no frames.
    told, recorded = run(python, PRELUDE + '''
try:
    import _interpreters as interpreters
    other = interpreters.create("legacy")
except ImportError:
    import _xxsubinterpreters as interpreters
    other = interpreters.create(isolated=False)
text = "import ctypes; ctypes.CDLL(%r).%s(1)" % (sys.argv[1], names.pop())
told["within"] = [text.split(".")[-1][:-3], []]
interpreters.run_string(other, text)
fails("beside")(1)
interpreters.destroy(other)
fails("after")(1)
done()
''') if version.split(".")[1] not in ("8", "9") else ({}, {})     # ctypes does not live through one there
    for label, (name, expected) in told.items():
        assert frames(recorded[name]) == (expected if label == "after" and known else []), (version, label, frames(recorded[name]))

    # Memory is believed only if it tells what the API does: by the layout of another version it is not even followed.
    for other in ("3.8.1", "3.10.1", "3.11.1", "3.12.1", "3.12.0rc1", "4.0.0"):
        old = tuple(map(int, version.split(".")[:2]))
        if f"{old[0]}.{old[1]}." in other or (old in ((3, 8), (3, 9)) and other == "3.8.1"):
            continue
        lie = bed.shared("liblie.so", "version_of_python.c", f'-DVERSION="{other} (main, of nobody)"')
        told, recorded = run(python, PRELUDE + 'told["libpython"] = "libpython" in open("/proc/self/maps").read()\ndef plain(): fails("lie")(1)\nplain()\ndone()\n', set={"LD_PRELOAD": lie})
        # Not asked for its version, or a program that has it itself, before all that is preloaded.
        by_itself = old >= (3, 13) and other in ("3.12.0rc1", "4.0.0") or not told["libpython"]
        assert frames(recorded[told["lie"][0]]) == (told["lie"][1] if by_itself and known else []), (version, other)

print("CPython", ", ".join(versions), "" if any(v.startswith("3.14") for v in versions) else "(3.14 not here, not tested)")
