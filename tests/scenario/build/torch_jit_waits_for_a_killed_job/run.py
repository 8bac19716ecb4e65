"""A fine-tune was killed in the first minute, while torch built its kernel. The next one hangs there without a word."""
from cudiag_scenario import *

world = World(*torch_wheels(), *NVCC)
torch_world(world)
train, build = torch_build(world)

killed = world.begin_under_shim(*train)
while not (build / "build.ninja").exists():
    time.sleep(0.02)
killed.kill()
assert (build / "lock").exists()

waiting = world.begin_under_shim(*train).hangs(4)
waiting.shows(str(build / "lock"), within_s=10)
finding = waiting.so_far().said("build-stale-lock", lock=build / "lock", build_directory=build, holders=[])
finding.proposes(r"rm (-f )?\S+/lock$", first=True)

finding.apply("rm")
ended = waiting.ends()
assert ended.status == 1 and "fused.so" in ended.stderr, ended      # who waits does not build
world.under_shim(*train, fresh=build.parent).is_silent()
