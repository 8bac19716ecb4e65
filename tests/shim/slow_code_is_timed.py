"""Calls of the driver that load or look up code, and first launches, are recorded when they take as long as a compiler does: with the file of
the code, the kernel and the device. Quick ones are not, nor are later launches that wait for something else."""
import fake_driver
from twin import *

bed = Bed()
program = bed.program("launches.c")
library = fake_driver.build(bed)


def story(before, slow, status=3, **more):
    """`before` launches of a kernel that is good, and then one that is not: the program ends with status 3."""
    faults = {"FAKE_DRIVER_FAULTY": "_Z5wrongPfm"} if status == 3 else {}
    environment = fake_driver.environment(FAKE_DRIVER_QUIET=1, FAKE_DRIVER_SLOW=slow, FAKE_DRIVER_CAPABILITY=90, **faults, **more)
    both = bed.twin(program, library, 1, before, 10, 0, env=environment)
    assert both.under.status == status, both.under
    return both


slow = story(3, "cuModuleGetFunction=150").recorded("cuda_code_slow")
assert [(e["name"], e["argument"], e["value"], e["device_ordinal"]) for e in slow] == [
    ("cuModuleGetFunction", "_Z4goodPfi", "Double 9000", 0), ("cuModuleGetFunction", "_Z5wrongPfm", "Double 9000", 0)], slow
assert all(150_000_000 <= e["duration_ns"] < 5_000_000_000 for e in slow), slow
limits = [value for e in slow for value in e.all("limit")]
assert 75 << 32 | 9 in limits and 76 << 32 | 0 in limits, limits

slow = story(3, "cuLaunchKernel=120").recorded("cuda_code_slow")
assert {e["name"] for e in slow} == {"cuLaunchKernel"} and all(e["handle"] for e in slow), slow
# Only the launches after a look-up are timed: later ones wait for room in a queue, or for the host.
slow = story(66, "cuLaunchKernel=101").recorded("cuda_code_slow")
assert len(slow) == 64, len(slow)

assert story(3, "cuModuleGetFunction=20 cuLaunchKernel=20").recorded("cuda_code_slow") == []
assert story(3, "cuCtxSynchronize=150").recorded("cuda_code_slow") == []
assert story(3, "cuModuleGetFunction=150", status=0).recordings() == []
