"""An error of a kernel comes back from whichever call is next. Over a double of the driver that works off streams as a GPU does; on a real
one: tests/gpu/launches_and_faults.py."""
import sys

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
world.set |= {"FAKE_DRIVER_QUIET": "1", "FAKE_DRIVER_FAULTY": "_Z5wrongPfm"}
launches = [compiled, library, "4", "500", "500", "0"]
shape = {"grid": "(70000, 2, 3)", "block": "(32, 4, 2)", "shared_bytes": 512}

# As it is: what was pending, and how to have the launch named.
run = world.under_shim(*launches)
assert run.status == 3, run
finding = run.said("cuda-async-error", code=700, call="cuLaunchKernel", pinned_by=has("not pinned"), streams=4)
assert "wrong" in finding.evidence["kernels"], finding.evidence
finding.proposes("export CUDIAG_TRACK=1", first=True)

# The fix applied: of each stream the first that was not finished, and the one at fault before the others.
world.set["CUDIAG_TRACK"] = "1"
finding = world.under_shim(*launches).said("cuda-async-error", pinned_by=has("CUDIAG_TRACK=1"))
suspects = finding.evidence["suspects"]
assert len(suspects) == 4 and suspects[0]["signature"] == "wrong(float*, unsigned long)", suspects
assert {key: suspects[0][key] for key in shape} == shape, suspects[0]
del world.set["CUDIAG_TRACK"]

# No kernel's fault, whatever was pending: the GPU's memory.
del world.set["FAKE_DRIVER_FAULTY"]
world.set["FAKE_DRIVER_FAILS"] = "cuCtxSynchronize=214"
run = world.under_shim(*launches)
run.did_not_say("cuda-async-error")
run.said("cuda-device-unavailable", code=214, call="cuCtxSynchronize").proposes("ROW_REMAPPER", first=True)
del world.set["FAKE_DRIVER_FAILS"]
world.set["FAKE_DRIVER_FAULTY"] = "_Z5wrongPfm"

world.set["CUDIAG_SYNC"] = "1"
finding = world.under_shim(*launches).said("cuda-async-error", pinned_by=has("CUDIAG_SYNC=1"))
suspect, = finding.evidence["suspects"]
assert suspect["kernel"] == "wrong" and "wrong" in finding.title, suspect
del world.set["CUDIAG_SYNC"]

# A launch that the driver refused: what was asked, and its own words.
world.set["FAKE_DRIVER_FAILS"] = "cuLaunchKernel=1"
finding = world.under_shim(*launches).said("cuda-launch-config", grid="(8, 1, 1)", block="(256, 1, 1)", gpu="Double 9000",
                                           driver_log=has("cuLaunchKernel refused it, says the log"))
assert "good" in finding.title, finding.title

# A program that is well says nothing, however it is watched.
world.set |= {"FAKE_DRIVER_FAILS": "", "FAKE_DRIVER_FAULTY": ""}
for mode in ("", "CUDIAG_TRACK", "CUDIAG_SYNC"):
    world.set |= {mode: "1"} if mode else {}
    world.under_shim(*launches).is_silent()
