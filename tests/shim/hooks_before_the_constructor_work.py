"""A library's constructor may run before the shim's own: its failed load is recorded, with the environment of the start, and
CUDIAG=off holds from the first call on."""
from twin import *

bed = Bed()
early = bed.shared("libearly.so", "early_constructor.c", "-ldl")
program = bed.program("ends.c", "-Wl,--no-as-needed", f"-L{bed.root}", f"-Wl,-rpath,{bed.root}", "-learly")
both = bed.twin(program, "/absent/later.so", "exit", 5, env={"NCCL_DEBUG": "INFO"})
assert [entry["name"] for entry in both.recorded("dlopen_failed")] == ["/absent/early.so", "/absent/later.so"], both.recordings()
assert [e["value"] for e in both.recorded("variable") if e["name"] == "NCCL_DEBUG"] == ["INFO"], both.recorded("variable")
assert both.recordings()[0][0]["end_status"] == 5, both.recordings()[0][0]
assert bed.twin(program, "/absent/later.so", "exit", 5, env={"CUDIAG": "off"}).recordings() == []
