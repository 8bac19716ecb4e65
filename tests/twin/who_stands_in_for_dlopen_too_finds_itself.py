"""A library behind the shim that has a dlopen of its own and finds its own file by asking dladdr for it (Nsight Compute does): it opens itself,
not the shim. So does one that is switched off."""
from twin import *

if MACHINE:
    cannot_run_here("the emulator preloads the shim alone")
bed = Bed()
program = bed.program("asks_for_the_driver.c")
for library, flags in (("libcuda-calls.so", ()), ("libcuda-jumps.so", ("-DJUMPS", "-O2", "-fno-stack-protector"))):
    stand_in = bed.shared(library, "hands_itself_out.c", *flags)
    for env in ({}, {"CUDIAG": "off"}):
        both = bed.twin(program, env={"LD_PRELOAD": stand_in, **env})
        assert both.under.stdout == "cuInit of who stands in\n", both.under
