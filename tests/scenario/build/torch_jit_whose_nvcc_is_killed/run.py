"""torch's build in a container whose memory ends: of 3 kB of RuntimeError, one word tells of it."""
from cudiag_scenario import *

group = control_group("memory", 140 << 20)
world = World(*torch_wheels(), *NVCC)
home = torch_world(world)
confined = world.write("nvcc", f"#!/bin/sh\necho $$ > {group}/cgroup.procs\nexec {home}/bin/nvcc \"$@\"\n")
confined.chmod(0o755)
train, build = torch_build(world)

run = world.under_shim(*train, fresh=build.parent, env={"PYTORCH_NVCC": confined})
run.fails_with("Killed", status=1)
finding = run.said("build-out-of-memory", program=has("cudafe++"), signal=has("KILL"), source=ends("csrc/fused.cu"),
                   limit_bytes=140 << 20, limit_kind=has("cgroup v"))
run.did_not_say("process-killed")

world.under_shim(*train, fresh=build.parent).is_silent()
