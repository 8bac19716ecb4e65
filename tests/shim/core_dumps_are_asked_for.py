"""CUDIAG_COREDUMP=1 sets the driver's own variables, for this process and its children, and nothing else ever does; the recording tells where the
dump would be. What a driver then writes: tests/unit/diagnose/cuda, and on a GPU tests/gpu/launches_and_faults.py."""
import fake_driver
from twin import *

bed = Bed()
environment = bed.program("prints_environment.c")
NAMES = ("CUDA_ENABLE_COREDUMP_ON_EXCEPTION", "CUDA_COREDUMP_FILE", "CUDA_COREDUMP_GENERATION_FLAGS")


def variables(**env):
    done = bed.run(environment, env=env)
    return {name: value for name, _, value in (line.partition("=") for line in done.stdout.splitlines()) if name in NAMES}


assert variables() == {} and variables(CUDIAG_COREDUMP=0) == {}
asked = variables(CUDIAG_COREDUMP=1)
assert set(asked) == set(NAMES) and asked["CUDA_ENABLE_COREDUMP_ON_EXCEPTION"] == "1", asked
assert asked["CUDA_COREDUMP_FILE"].startswith(f"{bed.root}/runs/") and asked["CUDA_COREDUMP_FILE"].endswith("/%p.gpucore"), asked
assert "skip_abort" not in asked["CUDA_COREDUMP_GENERATION_FLAGS"], "it swallows the error"

# Whoever has decided for himself is not overruled, and a path that the driver would misread is not given.
assert variables(CUDIAG_COREDUMP=1, CUDA_ENABLE_COREDUMP_ON_EXCEPTION=0) == {"CUDA_ENABLE_COREDUMP_ON_EXCEPTION": "0"}
percent = bed.run(environment, env={"CUDIAG_COREDUMP": 1}, runs=bed.root / "100%")
assert not any(line.startswith(NAMES) for line in percent.stdout.splitlines()), percent

program = bed.program("launches.c")
library = fake_driver.build(bed)
both = bed.twin(program, library, 1, 5, 5, 0, env=fake_driver.environment(FAKE_DRIVER_QUIET=1, FAKE_DRIVER_FAULTY="_Z5wrongPfm", CUDIAG_COREDUMP=1))
core, = both.recorded("cuda_core")
recording, = both.runs.glob("*/*.rec")
assert core["path"] == str(recording.with_suffix(".gpucore")), core

# Nothing is left of a run that went well, though it was asked for.
both = bed.twin(program, library, 1, 5, 5, 0, env=fake_driver.environment(FAKE_DRIVER_QUIET=1, CUDIAG_COREDUMP=1))
assert both.recordings() == [] and not list(both.runs.glob("*")), list(both.runs.glob("*"))
