"""What `import torch` then fails of is told ahead, with its remedy; and each repair is seen."""
from broken import old_libstdcxx
from cudiag_scenario import *

world = World(*torch_wheels(), pip_inside=True)
world.activate()
healthy = [world.python, "-c", "import torch; print(torch.__version__)"]
Diagnosis(world).answers_with(import_="green", load="green")
assert world.alone(*healthy)[0] == 0

shutil.rmtree(world.site / "nvidia/nvshmem")
lost = Diagnosis(world).answers_with(import_="red", build="red", load="red")
assert "libnvshmem_host.so.3" in lost.answers["import"]["text"], lost
status, _, stderr = world.alone(*healthy)
assert status == 1 and "libnvshmem_host.so.3" in stderr, stderr
reds = [check["finding"]["slug"] for check in lost.json["checks"] if check["health"] == "red" and check["finding"]]
lost.apply(reds[0], "pip install")
Diagnosis(world).answers_with(import_="green")
assert world.alone(*healthy)[0] == 0

# An old libstdc++ in front of all: ld.so looks at names of versions before it looks for a symbol.
old = old_libstdcxx(world, "old").parent
world.set["LD_LIBRARY_PATH"] = str(old)
shadowed = Diagnosis(world).answers_with(import_="red")
assert shadowed.check("loader-shadowed-library")["finding"]["evidence"]["used"] == str(old / "libstdc++.so.6"), shadowed
assert f"{old}/libstdc++.so.6: version `" in world.alone(*healthy)[2], world.alone(*healthy)
shadowed.apply("loader-shadowed-library", "LD_LIBRARY_PATH")
Diagnosis(world).answers_with(import_="green")

for name in world.site.glob("typing_extensions*"):
    shutil.rmtree(name) if name.is_dir() else name.unlink()
without = Diagnosis(world).answers_with(import_="red")
assert without.check("package-missing")["finding"]["evidence"]["package"] == "typing-extensions", without
assert "No module named 'typing_extensions'" in world.alone(*healthy)[2]
