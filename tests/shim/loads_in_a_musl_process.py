"""musl binds every symbol at the start and has neither on_exit nor atfork handlers: the shim loads there, changes nothing, and
records a failed load."""
from twin import *

if MACHINE:
    cannot_run_here("no musl for this machine")
need("musl-gcc")
bed = Bed()
bed.c = "musl-gcc"
loader = next(Path("/lib").glob("ld-musl-*.so.1"), None)
if loader is None:
    cannot_run_here("no musl loader")
program = bed.build("ends", "ends.c")
assert "ld-musl" in subprocess.run(["readelf", "-lW", str(program)], capture_output=True, text=True).stdout
for way, status, recorded in (("return", 0, 0), ("return", 5, 0), ("_exit", 0, 0), ("_exit", 5, 1), ("abort", 5, 1), ("exec", 5, 0)):
    # musl does not tell a destructor the status: a probe is forgotten at the end of main.
    both = bed.twin(program, "/absent/probe.so", way, status)
    names = [entry["name"] for entry in both.recorded("dlopen_failed")]
    assert names == ["/absent/probe.so"] * recorded, (way, status, names)
assert bed.twin(program, "/absent/probe.so", "return", 5, env={"CUDIAG": "off"}).recordings() == []
