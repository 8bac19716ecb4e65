"""A login node allows a few processes to each user. The build starts as many as there are cores, and cannot fork."""
from cudiag_scenario import *

need_program("ninja")
group = control_group("pids", 12)
world = World()
edges = "".join(f"build {n}.o: compile {n}.c\n" for n in range(12))
for n in range(12):
    world.write(f"build/{n}.c", table(30))
build = world.write("build/build.ninja", f"rule compile\n  command = gcc -c $in -o $out\n{edges}").parent
jit = world.write("jit.sh", f"exec ninja -j ${{MAX_JOBS:-12}} -C {build}\n")

run = world.under_shim("sh", jit, fresh=build, preexec_fn=joins(group), twin=WORLDS_ONLY)
run.fails_with("Resource temporarily unavailable")

# What explains it is one process more, and finds no room either: it says where to ask later.
finding = run.said("build-process-limit", printed=False, limit=12, limit_kind=has("pids.max"), max_jobs=has(""))
assert finding.evidence["refused"] > 0, describe(finding.json)
finding.proposes(r"MAX_JOBS=[1-4]\b", first=True)
run.did_not_say("build-out-of-memory", "build-missing-compiler", "build-missing-header")

while (group / "cgroup.procs").read_text():
    time.sleep(0.1)          # what ninja had started goes on without it
finding.apply("MAX_JOBS=")
world.under_shim("sh", jit, fresh=build, preexec_fn=joins(group)).is_silent()
