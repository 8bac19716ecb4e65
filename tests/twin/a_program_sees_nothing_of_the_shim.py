"""Descriptors, environment, signal actions, blocked signals, threads, limits, children, SIGCHLD: with nothing to record, with a
breakage recorded, and with the explanation of it started while the program lives."""
from twin import *

bed = Bed()
program = bed.program("looks_at_itself.c")
broken = bed.broken()
stand_in = not MACHINE
if stand_in:
    bed.with_stand_in()

for status in ("0", "5"):
    both = bed.twin(program, "quietly", "-", status)
    assert both.recordings() == [], both.runs
    both = bed.twin(program, "fail", broken, status)
    assert len(both.recorded("dlopen_failed")) == 1, both.recordings()
    if stand_in:
        # The explanation of the breakage runs while the program looks at itself.
        alive = {"CUDIAG_PRINT": "auto", "CUDIAG_STAND_IN_MS": "300"}
        both = bed.twin(program, "fail", broken, status, env=alive, same=lambda text: text.replace("stand-in speaks\n", ""))
        assert "stand-in speaks" in both.under.stderr, both.under
        both = bed.twin(program, "quietly", "-", status, env=alive)
        assert "stand-in speaks" not in both.under.stderr, both.under
both = bed.twin(program, "fail", broken, "5", env={"CUDIAG": "off"})
assert both.recordings() == [], both.runs
