"""The kernel kills a step of nvcc for want of memory. All that stands there is "Killed", and exit status 137 where ninja shows it."""
from cudiag_scenario import *

hide_toolkit(compiler=True)
group = control_group("memory", 140 << 20)
world = World(*NVCC)
cuda_home(world)
build = ninja_build(world, kernel(world))

run = world.under_shim("ninja", "-j1", "-C", build, fresh=build, preexec_fn=joins(group))
run.fails_with("Killed", status=1)

finding = run.said("build-out-of-memory", program=has("cudafe++"), signal=has("KILL"), source=ends("csrc/fused.cu"),
                   limit_bytes=140 << 20, limit_kind=has("cgroup v"), jobs_at_once=1)
assert finding.evidence["oom_kill_after"] > finding.evidence["oom_kill_before"], describe(finding.json)
finding.does_not_propose("MAX_JOBS")

world.under_shim("ninja", "-j1", "-C", build, fresh=build).is_silent()
