"""The ways in which a process ends, each with its status, and what is left of its recording: none after a good end that saw only
probes, all after a bad one or after breakage."""
from twin import *

bed = Bed()
program = bed.program("ends.c")
broken = bed.broken()
NONE, EXIT, EXIT_NOW, QUICK_EXIT, ABORT, EXEC = range(6)
ENDS = {"return": EXIT, "exit": EXIT, "_exit": EXIT_NOW, "_Exit": EXIT_NOW, "quick_exit": QUICK_EXIT, "atexit": EXIT_NOW,
        "exec-absent": EXIT}

for way, how in ENDS.items():
    for status in (0, 7):
        for load in ("", "/absent/probe.so", broken):
            both = bed.twin(program, load, way, status)
            recordings = both.recordings()
            kept = load == broken or (load != "" and status != 0)
            assert len(recordings) == (1 if kept else 0), (way, status, load, recordings)
            assert both.runs.exists() == bool(list(both.runs.glob("*"))) or not kept, list(both.runs.glob("*"))
            assert kept or not list(both.runs.glob("*")), (way, status, load, list(both.runs.glob("*")))
            if kept:
                assert (recordings[0][0]["end_how"], recordings[0][0]["end_status"]) == (how, status), (way, recordings[0][0])
for way, how, mark in (("abort", ABORT, 6), ("abort-handled", EXIT_NOW, 7), ("kill", NONE, 0), ("segv", NONE, 0)):
    both = bed.twin(program, "/absent/probe.so", way, 7)
    header, = [recording[0] for recording in both.recordings()]
    assert (header["end_how"], header["end_status"]) == (how, mark), (way, header)
if not MACHINE:
    for status in (0, 7):
        assert bed.twin(program, "/absent/probe.so", "exec", status).recordings() == []
        header, = [recording[0] for recording in bed.twin(program, broken, "exec", status).recordings()]
        assert header["end_how"] == EXEC, header
