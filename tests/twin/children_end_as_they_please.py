"""fork, vfork and exec in storms: statuses, wait and output are the program's own; a fork child records for itself, and a vfork
child leaves its parent's recording alone."""
from twin import *

bed = Bed()
program = bed.program("process_storm.c")
if MACHINE:
    cannot_run_here("qemu's guest cannot exec without binfmt_misc")
rounds = 12
both = bed.twin(program, rounds)
failed = [entry["name"] for entry in both.recorded("dlopen_failed")]
counts = collections.Counter(failed)
# The child that fails and then becomes a shell saw only a probe: its record goes with its image.
assert counts == {"/absent/first.so": 1, "/absent/last.so": 1, "/absent/in-fork-child.so": rounds}, counts
parents = [r for r in both.recordings() if any(e["name"] == "/absent/first.so" for e in r)]
assert len(parents) == 1 and [e["name"] for e in parents[0] if e.kind == "dlopen_failed"] == ["/absent/first.so", "/absent/last.so"]
assert (parents[0][0]["end_how"], parents[0][0]["end_status"]) == (1, 9), parents[0][0]
killed = [entry["status"] for entry in both.recorded("child_ended")]
assert killed == [9] * rounds, killed
for recording in both.recordings():
    header = recording[0]
    assert header["root_pid"] == parents[0][0]["pid"], header
    if header["pid"] != header["root_pid"]:
        assert (header["ppid"], header["end_how"], header["end_status"]) == (header["root_pid"], 2, 4), header
