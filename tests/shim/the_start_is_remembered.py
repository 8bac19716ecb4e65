"""A program that sets its title overwrites its arguments and environment: the variables recorded are those of its start, and its
children still find their root."""
from twin import *

if MACHINE:
    cannot_run_here("qemu's guest cannot exec without binfmt_misc")
bed = Bed()
program = bed.program("sets_its_title.c")
ends = bed.program("ends.c")
both = bed.twin(program, ends, "/absent/child.so", "exit", "5", env={"NCCL_DEBUG": "INFO", "LD_LIBRARY_PATH": "/nowhere"})
recordings = {e["name"]: r for r in both.recordings() for e in r if e.kind == "dlopen_failed"}
assert set(recordings) == {"/absent/titled.so", "/absent/child.so"}, recordings
variables = {e["name"]: e["value"] for e in recordings["/absent/titled.so"] if e.kind == "variable"}
assert variables["NCCL_DEBUG"] == "INFO" and variables["LD_LIBRARY_PATH"] == "/nowhere", variables
parent, child = recordings["/absent/titled.so"][0], recordings["/absent/child.so"][0]
assert child["root_pid"] == parent["root_pid"] == parent["pid"] and child["ppid"] == parent["pid"], (parent, child)
