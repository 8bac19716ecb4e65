"""A library behind the shim that has a dlopen of its own and finds its own file by asking dladdr for it (Nsight Compute does): it opens itself,
not the shim. Of every function that the shim stands before, dladdr says what it says without the shim."""
from twin import *

if MACHINE:
    cannot_run_here("the emulator preloads the shim alone")
bed = Bed()
program = bed.program("asks_for_the_driver.c")
stand_in = bed.shared("libcuda-injection.so", "hands_itself_out.c")
for env in ({}, {"CUDIAG": "off"}):
    both = bed.twin(program, env={"LD_PRELOAD": stand_in, **env})
    assert both.under.stdout == "cuInit of who stands in\n", both.under

asks = bed.program("asks_whose_functions_are.c")
for env in ({}, {"CUDIAG": "off"}):
    both = bed.twin(asks, env=env)
    whose = dict(line.split(" ", 1) for line in both.under.stdout.splitlines())
    assert len(whose) == 8 and all("libc.so.6" in file for file in whose.values()), whose
