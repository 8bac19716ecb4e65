"""A program that was linked with -lcuda has the driver's functions from ld.so, and its launches are not seen: who is told of a kernel's error is told that
too. Over a double of the driver."""
import sys

from cudiag_scenario import *

sys.path.insert(0, str(Path(__file__).resolve().parents[3] / "twin" / "lib"))
import fake_driver

no_real_driver()
world = World()
(world.root / "double.c").write_text(fake_driver.source())
library = world.root / "libcuda.so.1"
victims = Path(__file__).resolve().parents[3] / "victims"
linked, asking = world.root / "linked", world.root / "asking"
for command in (["gcc", "-shared", "-fPIC", "-w", "-O1", "-Wl,-soname,libcuda.so.1", "-o", library, world.root / "double.c"],
                ["gcc", "-w", "-o", linked, victims / "launches_by_name.c", library, "-ldl", f"-Wl,-rpath,{world.root}"],
                ["gcc", "-w", "-o", asking, victims / "launches.c", "-ldl"]):
    subprocess.run([str(word) for word in command], check=True)
world.set |= {"FAKE_DRIVER_QUIET": "1", "FAKE_DRIVER_FAULTY": "_Z5wrongPfm"}

run = world.under_shim(linked, library)
assert run.status == 3, run
error = run.said("cuda-async-error", code=700, call="cuCtxSynchronize")
assert "wrong" not in json.dumps(error.evidence["suspects"]), "it was not seen"
error.says("launches of linked are not seen")
run.said("cuda-unseen-launches", printed=False, objects=[str(linked)], functions=["cuLaunchKernel"])

# A program that asks for what it calls is not accused; nor is a linked one that is well.
slugs = lambda run: [f["slug"] for f in json.loads(world.cudiag("report", "--last", "--json", runs=run.runs).stdout)["findings"]]
assert "cuda-unseen-launches" not in slugs(world.under_shim(asking, library, "4", "500", "500", "0"))
world.set["FAKE_DRIVER_FAULTY"] = ""
world.under_shim(linked, library).is_silent()
