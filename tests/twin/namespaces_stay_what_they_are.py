"""dlmopen: a namespace of its own, into one that is there, loads from inside one, and what dlerror says of each failure. The shim
is not in the new namespace: loads made from inside it are not seen, and not disturbed."""
from twin import *

bed = Bed()
script = bed.program("loader_script.c")
bed.shared("callers/libby-runpath.so", "opens_from_here.c", f"-Wl,--enable-new-dtags,-rpath,{bed.root}/runpath")
bed.which("runpath/libonly-by-runpath.so")
bed.which("broken/libgone.so")
bed.which("broken/libneeds-gone.so", "-Wl,--no-as-needed", f"-L{bed.root}/broken", "-lgone")
(bed.root / "broken/libgone.so").unlink()

both = bed.twin(script, input="""
mopen base now runpath/libonly-by-runpath.so
mopen base now libonly-by-absence.so
error
mopen new now /absent/in-new.so
error
mopen new now broken/libneeds-gone.so
error
mopen new now (null)
error
mopen bad now libm.so.6
error
mopen base nothing libm.so.6
error
open now /absent/between.so
error
mopen new now callers/libby-runpath.so
error
mopen last now /absent/in-last.so
error
mopen last now libm.so.6
exit 3
""")
loads, lookups = told(both.under.stdout)
if len(loads) != 8:
    fail(f"not the 8 failures that this story is about: {loads}\n{both.under.stdout}")
reported_exactly(both, loads, lookups)
by_name = {entry["name"]: entry for entry in both.recorded("dlopen_failed")}
assert by_name["/absent/between.so"]["link_namespace"] is None, by_name
assert by_name["/absent/in-new.so"]["link_namespace"] == 2 ** 64 - 1, by_name      # LM_ID_NEWLM
assert by_name["/absent/in-last.so"]["link_namespace"] == 1, by_name
assert by_name["libonly-by-absence.so"]["link_namespace"] == 0, by_name

inside = bed.twin(script, input="mopen new now callers/libby-runpath.so\nvia now libonly-by-runpath.so\nvia now /absent/inside.so\nexit 3\n")
assert "runpath/libonly-by-runpath.so, which" in inside.under.stdout, inside.under
assert inside.recorded("dlopen_failed") == [], inside.recorded("dlopen_failed")
