"""Constructors that throw through dlopen, jump out of it, end the process, load libraries themselves, or print their backtrace:
the shim leaves no frame between the program and ld.so."""
from twin import *

bed = Bed()
opens = bed.program("opens_constructors.cpp")
ways = {"throws": 1, "jumps": 2, "exits": 3, "aborts": 4, "traces": 5, "opens": 6, "_exits": 7}
libraries = {way: bed.shared(f"lib{way}.so", "constructor.cpp", f"-DDOES={does}", "-ldl") for way, does in ways.items()}
for way, library in libraries.items():
    for second in ([], ["/absent/after.so"], [libraries["opens"]]):
        both = bed.twin(opens, library, *second)
        expected = [line for line in both.under.stdout.splitlines() if line.startswith("/absent/")]
        if both.under.status == 0:
            fail(f"{way}: {both.under}")
        # A process that ended with a status other than 0 keeps its record.
        reported_exactly(both, [(line.split(":")[0], line) for line in expected])
        if way == "traces" and not second:
            frames = both.under.stdout.splitlines()
            assert len(frames) >= 6 and not any("libcudiag" in frame for frame in frames), both.under.stdout
assert "caught 42" in bed.twin(opens, libraries["throws"]).under.stdout or MACHINE, "the throw was not caught"
