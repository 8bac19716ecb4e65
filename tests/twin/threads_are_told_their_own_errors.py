"""Many threads, with small stacks, that load and fail at once: each reads its own text, and each failure is recorded once."""
from twin import *

bed = Bed()
library = bed.which("libthere.so")
program = bed.program("many_threads.c")
for threads, rounds in ((2, 40), (16, 8), (300, 1)):
    both = bed.twin(program, threads, rounds, library)
    expected = sorted(line.removeprefix("failed ") for line in both.under.stdout.splitlines())
    names = [line.split(": ")[0] for line in expected]
    assert len(expected) == threads * rounds and len(set(names)) == len(names), both.under.stdout
    recorded = sorted(f"{entry['name']}: {entry['text']}" for entry in both.recorded("dlopen_failed"))
    assert recorded == expected, f"{len(recorded)} of {len(expected)} recorded: {set(expected) ^ set(recorded)}"
    for recording in both.recordings():
        header = next(entry for entry in recording if entry.kind == "header")
        assert header["dropped"] == 0 and header["torn"] == 0, header
