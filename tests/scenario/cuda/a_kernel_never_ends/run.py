"""A kernel that never ends: the program waits for it until somebody kills it. CUDIAG_TRACK=1 tells which one it was, while the program hangs and
afterwards, wherever the driver lets the marks be. Over a double; on a real GPU: tests/gpu/launches_and_faults.py."""
import sys
import time

from cudiag_scenario import *

sys.path.insert(0, str(Path(__file__).resolve().parents[3] / "twin" / "lib"))
import fake_driver

no_real_driver()
world = World()
(world.root / "double.c").write_text(fake_driver.source())
library = world.root / "libcuda.so.1"
compiled = world.root / "launches"
victim = Path(__file__).resolve().parents[3] / "victims" / "launches.c"
for command in (["gcc", "-shared", "-fPIC", "-w", "-O1", "-Wl,-soname,libcuda.so.1", "-o", library, world.root / "double.c"],
                ["gcc", "-w", "-o", compiled, victim, "-ldl"]):
    subprocess.run([str(word) for word in command], check=True)
world.set |= {"FAKE_DRIVER_QUIET": "1", "FAKE_DRIVER_FAULTY": "_Z5wrongPfm", "FAKE_DRIVER_HANGS": "1", "CUDIAG_TRACK": "1"}


def unfinished(runs):
    told = world.cudiag("report", "--last", "--json", runs=runs)
    return {f["slug"]: f for f in json.loads(told.stdout)["findings"]}.get("process-killed", {"evidence": {}})


def marks():
    return set(Path("/dev/shm").glob(f"cudiag-{os.geteuid()}/*.marks"))


for more in ({}, {"FAKE_DRIVER_REFUSES_FILES": "1"}):
    before = marks()
    hung = world.begin_under_shim(compiled, library, "4", "500", "500", "0", env=more)
    if WORLDS_ONLY:
        hung.process.kill()
        continue
    # It hangs once the other streams have come to their ends.
    state = lambda: Path(f"/proc/{hung.process.pid}/stat").read_text().rsplit(")", 1)[1].split()[0]
    for _ in range(100):
        time.sleep(0.1)
        if list(hung.runs.rglob("*.rec")) and state() == "S":
            break
    assert bool(marks() - before) == bool(more), "where they must last"
    assert not unfinished(hung.runs)["evidence"], "it lives"
    hung.process.kill()
    hung.process.wait()
    finding = unfinished(hung.runs)
    launch, = finding["evidence"]["unfinished"]
    assert (launch["signature"], launch["grid"]) == ("wrong(float*, unsigned long)", "(70000, 2, 3)"), launch
    assert finding["evidence"]["unfinished_launches"] == 251 - 125, finding["evidence"]  # of its stream: itself, and what was launched behind it
    world.cudiag("report", "--last", runs=hung.runs).ends_with(1, "on the GPU", "wrong <<<(70000, 2, 3), (32, 4, 2)>>>")
    for left in marks() - before:
        left.unlink()
