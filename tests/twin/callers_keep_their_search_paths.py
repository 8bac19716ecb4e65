"""glibc looks at the caller of dlopen: its DT_RPATH, DT_RUNPATH, $ORIGIN, namespace. Under the shim it must see the same caller.
Each case is also reported exactly: every failed load that the program asked about, with its own text, and nothing else."""
from twin import *

bed = Bed()
script = bed.program("loader_script.c")
bed.which("runpath/libonly-by-runpath.so")
bed.which("rpath/libonly-by-rpath.so")
bed.which("origin/libonly-by-origin.so")
bed.which("exe/libonly-by-exe.so")
bed.which("path/libonly-by-path.so")
bed.which("inherited/libdep.so")
bed.shared("callers/libby-runpath.so", "opens_from_here.c", f"-Wl,--enable-new-dtags,-rpath,{bed.root}/runpath")
bed.shared("callers/libby-rpath.so", "opens_from_here.c", f"-Wl,--disable-new-dtags,-rpath,{bed.root}/rpath")
bed.shared("callers/libby-origin.so", "opens_from_here.c", "-Wl,--enable-new-dtags,-rpath,$ORIGIN/../origin")
# A library whose own NEEDED is found only by the DT_RPATH of the library that needs it in turn.
bed.which("middle/libmiddle.so", "-Wl,--no-as-needed", f"-L{bed.root}/inherited", "-ldep")
bed.shared("callers/libinherits.so", "opens_from_here.c", "-Wl,--no-as-needed", f"-L{bed.root}/middle", "-lmiddle",
           f"-Wl,--disable-new-dtags,-rpath,{bed.root}/inherited:{bed.root}/middle", f"-Wl,-rpath-link,{bed.root}/inherited")
with_exe_rpath = bed.program("loader_script.c", f"-Wl,--disable-new-dtags,-rpath,{bed.root}/exe", name="with_exe_rpath")
(bed.root / "not-elf.so").write_text("this is no library\n")
(bed.root / "empty.so").write_text("")
(bed.root / "path/libnot-elf.so").write_text("this is no library\n")
bed.which("broken/libgone.so")
bed.which("broken/libneeds-gone.so", "-Wl,--no-as-needed", f"-L{bed.root}/broken", "-lgone")
(bed.root / "broken/libgone.so").unlink()
bed.which("undefined/liblacks.so", "-DNEEDS=a_function_that_nobody_has")

lines = ["open now libm.so.6", "error"]
for caller in ("runpath", "rpath", "origin"):
    for wanted in ("runpath", "rpath", "origin", "path", "exe"):
        lines += [f"open now callers/libby-{caller}.so", f"via now libonly-by-{wanted}.so", "error", "error"]
lines += ["open now callers/libinherits.so", "error", "via now libdep.so", "error"]
for name in ("$ORIGIN/path/libonly-by-path.so", "${ORIGIN}/absent.so", "path/libonly-by-path.so", "./path/libonly-by-path.so",
             "libonly-by-path.so", "(null)", "(empty)", "not-elf.so", "./not-elf.so", "./empty.so", "./absent.so", "absent.so",
             "libnot-elf.so", "/", "/etc", "broken/libneeds-gone.so", "undefined/liblacks.so", f"{bed.root}/path/../path/libonly-by-path.so"):
    for mode in ("lazy", "now", "now,global", "now,noload", "now,deepbind", "lazy,noload,global", "nothing", "now,nodelete"):
        lines += [f"open {mode} {name}", "error", "error"]
lines += ["open lazy undefined/liblacks.so", "sym uses_it", "error", "open now libonly-by-path.so", "sym absent_symbol", "error",
          "sym which", "error", "vsym which V_1", "error", "default absent_symbol", "error", "next absent_symbol", "error",
          "next dlopen", "default dlerror", "error", "close", "error", "badclose", "error"]
# A failure that nobody asks about is no failure; a later one is told by itself.
lines += ["open now /absent/unread.so", "open now libm.so.6", "sym absent_symbol", "error",
          "open now /absent/unread.so", "open now /absent/read.so", "error", "open now /absent/unread.so", "default absent_symbol", "error",
          "open now libm.so.6", "open now /absent/unread.so", "sym absent_symbol", "error"]
lines += ["open now /absent/pending.so", "others", "error", "sym absent_symbol", "others", "error", "errno 0", "errno 42", "exit 3"]
environment = {"LD_LIBRARY_PATH": bed.root / "path"}
for program in (script, with_exe_rpath):
    both = bed.twin(program, input="\n".join(lines), env=environment)
    loads, lookups = told(both.under.stdout)
    if len(loads) < 60 or len(lookups) < 5:
        fail(f"the bed is not what it should be: {len(loads)} failed loads, {len(lookups)} failed lookups\n{both.under.stdout}")
    reported_exactly(both, loads, lookups)
# errno is what it is without the shim, also where it could not record (ENOTDIR).
errnos = "errno 42\nerrno 7\nexit 3\n"
alone, under = bed.run(script, shim=False, input=errnos), bed.run(script, input=errnos, runs="/dev/null/nowhere")
assert alone == under, (alone, under)
print(f"{len(loads)} failed loads and {len(lookups)} failed lookups, each told once")
