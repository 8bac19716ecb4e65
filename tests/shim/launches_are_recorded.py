"""Launches in the rings, what is done and what is not, names, failed launches, graphs, marks of the GPU, waits behind launches: over a double."""
import fake_driver
from twin import *

bed = Bed()
program = bed.program("launches.c")
library = fake_driver.build(bed)
LAUNCH, GRAPH, WAITED, FAILED = 1, 2, 3, 4
UNDATED = 8  # a flag of launches


def story(streams, before, after, waits, *graphs, fails=None, wrong=False, **set):
    quiet = {"FAKE_DRIVER_QUIET": 1, **({"FAKE_DRIVER_FAULTY": "_Z5wrongPfm"} if wrong else {}), **set}
    return bed.twin(program, library, streams, before, after, waits, *graphs, env=fake_driver.environment(fails, **quiet))


def hot(both, kind):
    recording, = both.recordings()
    return [entry["words"] for entry in recording if entry.kind == "hot" and entry["kind"] == kind]


# A healthy program: nothing is left, whatever it launched.
both = story(4, 5000, 5000, 7, 3)
assert both.under.status == 0 and both.recordings() == []

# The newest 8192 of a thread, with everything that tells them apart; the wait that failed.
both = story(4, 100, 20, 0, wrong=True)
launches = hot(both, LAUNCH)
assert both.under.status == 3 and len(launches) <= 121
wrong, = [words for words in launches if words[2] == 70000 | 2 << 32]
assert wrong[3] == 3 | 512 << 32 and wrong[4] == 32 | 4 << 21 | 2 << 42 and wrong[5] == 0, wrong
names = {entry["handle"]: entry["name"] for entry in both.recorded("cuda_function")}
assert [names[words[0]] for words in (launches[0], wrong)] == ["_Z4goodPfi", "_Z5wrongPfm"]
assert len({words[1] for words in launches}) == 4
failed = both.recorded("cuda_call_failed")
assert failed[0]["error"] == 700 and hot(both, FAILED)[0][0] == 700
both = story(4, 9000, 20, 0, wrong=True)
assert len(hot(both, LAUNCH)) + len(hot(both, WAITED)) + len(hot(both, FAILED)) == 8192

# Of launches that follow each other closely one in 16 has read the clock, the others are dated as the one before them that has; the first of all has,
# and each behind a wait.
ring = [entry for entry in both.recordings()[0] if entry.kind == "hot" and entry["kind"] == LAUNCH]
assert len(ring) / 20 < sum(entry["flags"] & UNDATED == 0 for entry in ring) < len(ring) / 10, [entry["flags"] for entry in ring][:100]
assert all(one["ticks"] == before["ticks"] if one["flags"] & UNDATED else one["ticks"] > before["ticks"] for before, one in zip(ring, ring[1:]))
both = story(1, 500, 100, 3, wrong=True)
ring = [entry for entry in both.recordings()[0] if entry.kind == "hot"]
assert ring[0]["kind"] == LAUNCH and ring[0]["flags"] == 0 and WAITED in {entry["kind"] for entry in ring}
assert all(one["flags"] == 0 for before, one in zip(ring, ring[1:]) if before["kind"] != LAUNCH), ring

# A launch that the driver refuses, with what it was asked, the device, the function, and the driver's own words.
both = story(1, 3, 0, 0, fails={"cuLaunchKernel": 1})
failed, = both.recorded("cuda_call_failed")
assert (failed.all("grid"), failed.all("block"), failed["stream"]) == ([8, 1, 1], [256, 1, 1], 1), failed
assert failed["value"] == "Double 9000" and 4 << 32 | 104 in failed.all("function_limit"), failed
log, = both.recorded("cuda_log")
assert log["text"] == "cuLaunchKernel refused it, says the log"
assert hot(both, FAILED)[0][4] == 1 and len(hot(both, LAUNCH)) == 1

# Graphs: how many kernels each replay has.
both = story(1, 1, 1, 0, 7, fails={"cuCtxSynchronize": 719})
graph, = both.recorded("cuda_graph")
assert graph["count"] == 4 and [words[0] for words in hot(both, GRAPH)] == [graph["handle"]] * 7

# Captured launches are told apart (the double says that every stream is captured, once a capture began).
assert all(entry["flags"] & ~UNDATED == 0 for entry in both.recordings()[0] if entry.kind == "hot")

# Marks: what the GPU itself says. One slot a stream; the faulty launch is the first that is not finished on its own.
for register, more in ((0, {}), (0, {"FAKE_DRIVER_REFUSES_FILES": 1}), (1, {})):
    both = story(4, 5000, 5000, 0, wrong=True, CUDIAG_TRACK=1, fails={"cuMemHostRegister_v2": 1} if register else None, **more)
    recording, = both.recordings()
    why, = both.recorded("cuda_tracking")
    slots = {entry["stream"]: entry for entry in recording if entry.kind == "progress"}
    if register:
        assert why["text"] == "the driver cannot map memory of the host" and not slots, (why, slots)
        continue
    assert why["text"] == "" and len(slots) == 4
    # Kept apart while the process lives, and nothing is left of it.
    apart = why.all("path")
    assert bool(apart) == bool(more) and not any(Path(path).exists() for path in apart), apart
    wrong, = [words for words in hot(both, LAUNCH) if words[2] == 70000 | 2 << 32]
    assert slots[wrong[1]]["finished"] + 1 == wrong[5], (slots, wrong)
    assert all("cuStreamWriteValue32" not in line["text"] for line in both.recorded("cuda_log")), "of ours, and not the program's"
    assert all(0 < slot["finished"] <= slot["launched"] for slot in slots.values())
# A driver that refuses a mark: no more of them, and the program is none the wiser.
both = story(4, 50, 50, 0, wrong=True, CUDIAG_TRACK=1, fails={"cuStreamWriteValue32_v2": 801})
assert [entry["text"] for entry in both.recorded("cuda_tracking")] == ["", "the driver refused a mark"]
assert all("cuStreamWriteValue32" not in line["text"] for line in both.recorded("cuda_log"))

# A wait behind each launch: the launch at fault is the last one.
both = story(4, 500, 500, 0, wrong=True, CUDIAG_SYNC=1)
failed = both.recorded("cuda_call_failed")[0]
assert failed["launched"] == 1 and failed.all("grid") == [70000, 2, 3] and failed["error"] == 700, failed

# The program sees none of it: output and status are equal (bed.twin), and memory stays as it was.
assert story(4, 500, 500, 0, CUDIAG_TRACK=1).recordings() == []
assert story(4, 500, 500, 0, CUDIAG_SYNC=1).recordings() == []
assert story(4, 10, 10, 0, wrong=True, CUDIAG_RING_MB=64).recordings() != []

# The line of Python, with the GIL (PyDLL) and without it (CDLL; torch releases it in every operator).
if not MACHINE:
    script = bed.root / "launch.py"
    script.write_text("""\
import ctypes, sys
holding, released = ctypes.PyDLL(sys.argv[1]), ctypes.CDLL(sys.argv[1])
shape = [ctypes.c_void_p(0x5000010), 1, 1, 1, 32, 1, 1, 0, None, None, None]

def step(cuda):
    cuda.cuLaunchKernel(*shape)

function = ctypes.c_void_p()
holding.cuModuleGetFunction(ctypes.byref(function), ctypes.c_void_p(0x4000), b"k")
for i in range(3):
    step(holding)
step(released)
print(holding.cuCtxSynchronize())
sys.exit(3)
""")
    both = bed.twin(sys.executable, script, library, env=fake_driver.environment({"cuCtxSynchronize": 700}, FAKE_DRIVER_QUIET=1, CUDIAG_TRACK=1))
    holding, released = both.recorded("cuda_site")
    assert holding.all("python_line")[:2] == [6, 11] and holding["python_file"] == str(script), holding
    assert released.all("python_line")[:2] == [6, 12] and released.all("python_function")[:1] == ["step"], released
    assert [words[5] >> 32 for words in hot(both, LAUNCH)] == [1, 1, 1, 2], hot(both, LAUNCH)

    # Launches that come slowly each have a time of their own, once those that came quickly before them have shared theirs.
    script.write_text("""\
import ctypes, sys, time
cuda = ctypes.CDLL(sys.argv[1])
shape = [ctypes.c_void_p(0x5000010), 1, 1, 1, 32, 1, 1, 0, None, None, None]
function = ctypes.c_void_p()
cuda.cuModuleGetFunction(ctypes.byref(function), ctypes.c_void_p(0x4000), b"k")
for i in range(200): cuda.cuLaunchKernel(*shape)
for i in range(60):
    time.sleep(0.002)
    cuda.cuLaunchKernel(*shape)
print(cuda.cuCtxSynchronize())
sys.exit(3)
""")
    both = bed.twin(sys.executable, script, library, env=fake_driver.environment({"cuCtxSynchronize": 700}, FAKE_DRIVER_QUIET=1))
    ring = [entry for entry in both.recordings()[0] if entry.kind == "hot" and entry["kind"] == LAUNCH]
    assert len(ring) == 260 and any(entry["flags"] & UNDATED for entry in ring[:200]) and not any(entry["flags"] for entry in ring[216:]), ring
    assert ring[-1]["time_ns"] - ring[216]["time_ns"] > 43 * 2_000_000

# What the shim takes for an error that sticks is what the command knows as one.
shim = set(map(int, re.search(r"kSticky\[\] = \{([^}]*)\}", (TESTS.parent / "shim/cuda/failed_calls.cpp").read_text())[1].split(",")))
known = re.findall(r'\{"code": "(\d+)"[^{}]*"sticky": true', (TESTS.parent / "diagnose/knowledge/cuda_errors.json").read_text())
assert shim == set(map(int, known)) and len(shim) > 10, (shim, known)
