"""Which calls are recorded: those that failed, with the driver's words and who called, few of each; no probes, nothing of a program
that is well, and nothing of a function that only has a known one's name."""
import fake_driver
from twin import *

bed = Bed()
program = bed.program("asks_driver.c")
library = fake_driver.build(bed)


def story(*lines, status=3, fails=None, **options):
    environment = fake_driver.environment(fails, **options.pop("set", {}))
    text = "\n".join([f"open {library}", *lines, f"exit {status}"])
    return bed.twin(program, input=text, env=environment, **options)


both = story("sym cuInit", "call", "sym cuMemAlloc_v2", "call", "proc cuLaunchKernel 12000 0", "call", fails={"cuMemAlloc_v2": 2, "cuLaunchKernel": 719})
recording, = both.recordings()
driver, = [entry for entry in recording if entry.kind == "cuda_driver"]
assert (driver["path"], driver["driver_version"]) == (str(library), 13000), driver
failed = [entry for entry in recording if entry.kind == "cuda_call_failed"]
assert [(entry["name"], entry["error"], entry["text"]) for entry in failed] == [("cuMemAlloc_v2", 2, "words for 2"), ("cuLaunchKernel", 719, "words for 719")]
assert all(entry["caller"] == str(program) and entry["caller_offset"] > 0 for entry in failed), failed

# A program that is well leaves nothing, whether calls failed or not; one that failed of something else tells its driver.
for fails in ({}, {"cuMemAlloc_v2": 2}):
    assert story("sym cuInit", "call", "sym cuMemAlloc_v2", "call", status=0, fails=fails).recordings() == []
recording, = story("sym cuInit", "call").recordings()
assert [entry["driver_version"] for entry in recording if entry.kind == "cuda_driver"] == [13000]
assert not [entry for entry in recording if entry.kind == "cuda_call_failed"]
assert not [entry for entry in story("sym cuMemAlloc_v2", "call").recorded("cuda_driver")], "cuInit was never called"
both = story("sym cuInit", "call", fails={"cuInit": 100})
assert [(entry["name"], entry["error"]) for entry in both.recorded("cuda_call_failed")] == [("cuInit", 100)]
assert len(both.recorded("cuda_driver")) == 1

# Answers, not errors.
assert story("sym cuStreamQuery", "call", "sym cuMemAlloc_v2", "call", fails={"cuStreamQuery": 600, "cuMemAlloc_v2": 600}).recorded("cuda_call_failed") == []
assert story("sym cuEventQuery", "call", fails={"cuEventQuery": 900}).recorded("cuda_call_failed") == []
assert len(story("sym cuEventQuery", "call", fails={"cuEventQuery": 700}).recorded("cuda_call_failed")) == 1
assert len(story("sym cuMemAlloc_v2", "call", fails={"cuMemAlloc_v2": 900}).recorded("cuda_call_failed")) == 1
assert story("proc cuNothing 13000 0", "old cuNothing 13000 0").recorded("cuda_call_failed") == []

# Few of the same, and few in all.
both = story("sym cuMemAlloc_v2", "again 1000", "call", fails={"cuMemAlloc_v2": 2})
assert len(both.recorded("cuda_call_failed")) == 5, "4 from one place, and 1 from another"
names = [name for name, _ in fake_driver.rows() if name not in (*fake_driver.RESOLVERS, "cuDriverGetVersion")]
both = story(*(line for name in names for line in (f"sym {name}", "again 9")), fails={name: 1 for name in names}, set={"FAKE_DRIVER_QUIET": 1})
assert len(both.recorded("cuda_call_failed")) == 64
assert all(entry[0]["dropped"] == 0 for entry in both.recordings())

# By pointer: what another function of a known name gives is not noted, nor is its neighbour with another signature.
both = story("proc cuMemAlloc 12000 0", "call", fails={"another": 2}, set={"FAKE_DRIVER_ANOTHER": "cuMemAlloc"})
assert "another(" in both.under.stdout and both.recorded("cuda_call_failed") == []
for version, name in ((12000, "cuCtxSynchronize"), (13000, "cuCtxSynchronize_v2")):
    both = story(f"proc cuCtxSynchronize {version} 0", "call", fails={"cuCtxSynchronize": 700, "cuCtxSynchronize_v2": 700})
    assert [entry["name"] for entry in both.recorded("cuda_call_failed")] == [name], version

# Each process its own: a fork child notes what fails in it, and has seen nothing before.
both = story("sym cuMemAlloc_v2", "call", "fork", fails={"cuMemAlloc_v2": 2})
records = {record[0]["pid"]: [entry["error"] for entry in record if entry.kind == "cuda_call_failed"] for record in both.recordings()}
assert sorted(map(len, records.values())) == [1, 1], records

assert story("sym cuMemAlloc_v2", "call", fails={"cuMemAlloc_v2": 2}, set={"CUDIAG": "off"}).recordings() == []
# Nothing is allocated, and a failing call does not look like an ending one.
both = story("sym cuLaunchKernel", "quiet 100000", "sym cuMemAlloc_v2", "quiet 1000", fails={"cuMemAlloc_v2": 2}, set={"FAKE_DRIVER_QUIET": 1})
assert both.under.stdout.count("  0 allocations") == 2, both.under.stdout
if not MACHINE:
    # The line of Python that called, whether its thread holds the GIL or not.
    script = bed.root / "story.py"
    script.write_text("""\
import ctypes, sys

def inner(cuda):
    return cuda.cuMemAlloc_v2(1, 2)

holding, released = ctypes.PyDLL(sys.argv[1]), ctypes.CDLL(sys.argv[1])
try:
    raise KeyError("kept")
except KeyError:
    print(inner(holding), released.cuMemFree_v2(1), repr(sys.exc_info()[1]))
sys.exit(3)
""")
    both = bed.twin(sys.executable, script, library, env=fake_driver.environment({"cuMemAlloc_v2": 2, "cuMemFree_v2": 1}))
    held, free = both.recorded("cuda_call_failed")
    assert (held["name"], held["python_file"], held.all("python_line"), held.all("python_function")) == (
        "cuMemAlloc_v2", str(script), [4, 10], ["inner", "<module>"]), held
    assert (free["name"], free["python_file"], free.all("python_line"), free.all("python_function")) == (
        "cuMemFree_v2", str(script), [10], ["<module>"]), free

    text = f"open {library}\nsym cuLaunchKernel\ntime 20000\nsym cuCtxSetCurrent\ntime 20000\nexit 0\n"
    alone, under = (bed.run(program, shim=shim, input=text, env={"FAKE_DRIVER_BARE": 1}).stdout for shim in (False, True))
    for name, a, b in zip(("11 arguments", "1 argument"), *([float(ns) for ns in re.findall(r"([\d.]+) ns", out)] for out in (alone, under))):
        print(f"{name}: {a:.2f} ns alone, {b - a:+.2f} ns under the shim")
        assert b - a < 100, "a call of the driver costs more than a system call"
