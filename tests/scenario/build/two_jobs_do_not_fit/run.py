"""Each of two compilers fits into the container's memory, both together do not. MAX_JOBS, which this build heeds, is the remedy."""
from cudiag_scenario import *

need_program("ninja")
group = control_group("memory", 330 << 20)
world = World()
one, two = world.write("csrc/one.cpp", table(1000)), world.write("csrc/two.cpp", table(1000))
build = world.write("build/build.ninja", f"""rule compile
  command = c++ -c $in -o $out
build one.o: compile {one}
build two.o: compile {two}
""").parent
jit = world.write("jit.sh", f"exec ninja -j ${{MAX_JOBS:-2}} -C {build}\n")

run = world.under_shim("sh", jit, fresh=build, preexec_fn=joins(group), twin=WORLDS_ONLY)
run.fails_with("Killed signal terminated program cc1plus", status=1)

finding = run.said("build-out-of-memory", program=has("cc1plus"), source=has("/csrc/"), limit_bytes=330 << 20, jobs_at_once=2,
                   max_jobs=1)
finding.proposes(r"MAX_JOBS=1", first=True)
finding.apply("MAX_JOBS=1")
world.under_shim("sh", jit, fresh=build, preexec_fn=joins(group)).is_silent()
