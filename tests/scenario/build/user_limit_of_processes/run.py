"""ulimit -u is the user's, not the cgroup's, and nothing counts what it refuses: only the calls that failed tell."""
from cudiag_scenario import *

need_program("make")
if os.geteuid() != 0:
    raise CannotRun("only root can become a user that has no other processes")
world = World()
for n in range(12):
    world.write(f"build/{n}.c", table(30))
makefile = "all: " + " ".join(f"{n}.o" for n in range(12)) + "\n" + "".join(f"{n}.o: {n}.c\n\tgcc -c $< -o $@\n" for n in range(12))
build = world.write("build/Makefile", makefile).parent


def as_a_user_of_few_processes():
    resource.setrlimit(resource.RLIMIT_NPROC, (6, 6))
    os.setgid(65533)
    os.setuid(65533)


for directory in [world.root, *world.root.rglob("*")]:
    if directory.is_dir():
        directory.chmod(0o777)
run = world.under_shim("make", "-j12", "-C", build, fresh=build, preexec_fn=as_a_user_of_few_processes, twin=False)
run.fails_with("Resource temporarily unavailable")

finding = run.said("build-process-limit", printed=False, limit=6, limit_kind="RLIMIT_NPROC", max_jobs=has(""))
finding.proposes(r"MAX_JOBS=[1-4]\b", first=True)
run.did_not_say("build-out-of-memory", "build-missing-compiler")
