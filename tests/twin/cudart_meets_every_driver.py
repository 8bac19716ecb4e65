"""NVIDIA's own libcudart of CUDA 11.8, 12.9 and 13.0 with no driver, one that is too old, one without a device, one that fails: its
answers are the same under the shim, and the driver's version and refusals are recorded."""
import fake_driver
from twin import *

if MACHINE:
    cannot_run_here("no cudart for this machine")
sys.path.insert(0, str(TESTS / "scenario" / "lib"))
from machine import CannotRun
from worlds import wheel

bed = Bed()
program = bed.program("asks_cudart.c")
fake_driver.build(bed, "driver/libcuda.so.1")
try:
    runtimes = [next(wheel(requirement).glob("nvidia/*/lib/libcudart.so.1*")) for requirement in
                ("nvidia-cuda-runtime-cu11==11.8.89", "nvidia-cuda-runtime-cu12==12.9.79", "nvidia-cuda-runtime==13.0.96")]
except CannotRun as why:
    cannot_run_here(why)

no_driver = "libcuda.so.1" not in subprocess.run(["/sbin/ldconfig", "-p"], capture_output=True, text=True).stdout
for runtime in runtimes:
    if no_driver:
        both = bed.twin(program, runtime, 3)
        assert "count: 35 cudaErrorInsufficientDriver" in both.under.stdout, both.under.stdout
        assert both.recorded("cuda_call_failed") == [] and both.recorded("cuda_driver") == []
    answers = {}
    for what, settings in (("too old", {"FAKE_DRIVER_VERSION": 10020}), ("no device", fake_driver.environment({"cuInit": 100})),
                           ("broken", fake_driver.environment({"cuInit": 999})), ("mismatch", fake_driver.environment({"cuInit": 803})),
                           ("bare", {}), ("has all", {"FAKE_DRIVER_HAS_ALL": 1})):
        both = bed.twin(program, runtime, 3, env={"LD_LIBRARY_PATH": bed.root / "driver", **settings})
        failed = [(entry["name"], entry["error"], Path(entry["caller"]).name) for entry in both.recorded("cuda_call_failed")]
        answers[what] = both.under.stdout.splitlines()[0]
        print(f"{runtime.name}, {what}: {answers[what]}; {'init called' if 'cuInit(' in both.under.stdout else 'no init'}; recorded {failed}")
        version = settings.get("FAKE_DRIVER_VERSION", 13000)
        assert [entry["driver_version"] for entry in both.recorded("cuda_driver")] == [version], what
        if what in ("no device", "broken", "mismatch") and "cuInit(" in both.under.stdout:
            assert failed and failed[0] == ("cuInit", settings["FAKE_DRIVER_FAILS"] and int(settings["FAKE_DRIVER_FAILS"].split("=")[1]), runtime.name), failed
        assert bed.twin(program, runtime, 0, env={"LD_LIBRARY_PATH": bed.root / "driver", **settings}).recordings() == []
    assert len(set(answers.values())) > 1, f"the doubles make no difference to {runtime.name}: {answers}"
