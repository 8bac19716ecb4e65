"""A container's memory ends in the midst of the C++ part: the kernel kills cc1plus. One job was running, so no -j helps."""
from cudiag_scenario import *

need_program("ninja")
group = control_group("memory", 130 << 20)
world = World()
world.set["CUDA_HOME"] = "/nonexistent"
world.activate()
big = world.write("csrc/tables.cpp", table(1000))
build = ninja_build(world, "none.cu", main=big)

run = world.under_shim("ninja", "-j1", "-C", build, "main.o", fresh=build, preexec_fn=joins(group))
run.fails_with("fatal error: Killed signal terminated program cc1plus", status=1)

finding = run.said("build-out-of-memory", program=has("cc1plus"), signal=has("KILL"), source=big, limit_bytes=130 << 20,
                   limit_kind=has("cgroup v"), jobs_at_once=1)
assert finding.evidence["oom_kill_after"] > finding.evidence["oom_kill_before"], describe(finding.json)
assert 60 << 20 < finding.evidence["peak_bytes"] < 200 << 20, describe(finding.json)
finding.does_not_propose("MAX_JOBS")
run.did_not_say("process-killed", "build-missing-header")

world.under_shim("ninja", "-j1", "-C", build, "main.o", fresh=build).is_silent()
