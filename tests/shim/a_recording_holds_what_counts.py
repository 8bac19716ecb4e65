"""What an entry says: module lists in link-map order with the shim's own object marked, the caller and its offset, breakage told
from probes; and a log that module lists alone cannot fill."""
from twin import *

bed = Bed()
program = bed.program("loader_script.c")
caller = bed.shared("libcaller.so", "opens_from_here.c")
broken = bed.broken()
bed.which("undefined/liblacks.so", "-DNEEDS=a_function_that_nobody_has")
(bed.root / "text.so").write_text("no library\n" * 20)
(bed.root / "script.so").write_text("/* GNU ld script */\nGROUP ( /lib/libc.so.6 )\n")
(bed.root / "libscript.so").write_text("/* GNU ld script */\nGROUP ( /lib/libc.so.6 )\n")
(bed.root / "empty.so").write_text("")
bed.which("libcuda.so.1")
needs_driver = bed.which("needs_driver.so", "-Wl,--no-as-needed", f"-L{bed.root}", "-l:libcuda.so.1")
(bed.root / "libcuda.so.1").unlink()
bed.which("libfirst.so", "-Wl,--no-as-needed", f"-L{bed.root}", "-lbroken", "-Wl,--unresolved-symbols=ignore-all")

CERTAIN = {f"{bed.root}/libbroken.so": True, f"{bed.root}/undefined/liblacks.so": True, f"{bed.root}/text.so": True,
           f"{bed.root}/empty.so": True, f"{bed.root}/script.so": False, "libscript.so": False, "libabsent.so": False,
           f"{bed.root}/libabsent.so": False, f"{bed.root}/needs_driver.so": False, "libfirst.so": True, "libcuda.so.1": False,
           "libbroken.so": True}
lines = [f"open now {name}\nerror" for name in CERTAIN] + [f"open now {caller}", "via now /absent/by-library.so", "error", "exit 3"]
both = bed.twin(program, input="\n".join(lines), env={"LD_LIBRARY_PATH": bed.root})
recording, = both.recordings()
failed = {entry["name"]: entry for entry in recording if entry.kind == "dlopen_failed"}
certain = {name: failed[name]["certain"] == 1 for name in CERTAIN}
assert certain == CERTAIN, {name: failed[name]["text"] for name in CERTAIN if certain[name] != CERTAIN[name]}
assert failed["/absent/by-library.so"]["caller"] == str(caller) and failed["/absent/by-library.so"]["caller_offset"] > 0
assert failed["libabsent.so"]["caller"] == str(program) and failed["libabsent.so"]["flags"] == 2

process, = [entry for entry in recording if entry.kind == "process"]
if not MACHINE:
    assert process["path"] == str(program) and process.all("argument") == [str(program)], process
    assert process["working_directory"] == str(bed.root), process
lists, modules = [], []
for entry in recording:
    if entry.kind == "module":
        modules.append(entry)
    elif entry.kind == "snapshot":
        assert entry["index"] == len(modules), entry
        lists.append(modules)
        modules = []
assert [entry["snapshot"] for entry in recording if entry.kind == "snapshot"] == list(range(1, len(lists) + 1))
assert [entry["index"] for entry in lists[0]] == list(range(len(lists[0])))
roots = [entry["path"] for entry in lists[0] if entry["root"] == 1]
assert [os.path.realpath(path) for path in roots] == [os.path.realpath(bed.library)], roots
for entry in lists[-1]:
    if entry["path"].startswith("/") and os.path.exists(entry["path"]) and not MACHINE:
        status = os.stat(entry["path"])
        assert (entry["device"], entry["inode"]) == (status.st_dev, status.st_ino), entry
assert failed["/absent/by-library.so"]["snapshot"] == len(lists), "the list was not renewed after a load"
assert str(caller) in [entry["path"] for entry in lists[-1]]

# Loads that change the list and failures in turn: lists leave room for what comes after them.
for number in range(120):
    shutil.copy(caller, bed.root / f"libcopy{number}.so")
lines = "".join(f"open now {bed.root}/libcopy{n}.so\nopen now /absent/{n}.so\nerror\n" for n in range(120)) * 6 + f"open now {broken}\nerror\nexit 3\n"
both = bed.twin(program, input=lines, env={"LD_LIBRARY_PATH": bed.root})
recording, = both.recordings()
assert recording[0]["dropped"] == 0, recording[0]
names = [entry["name"] for entry in recording if entry.kind == "dlopen_failed"]
assert names == [f"/absent/{n}.so" for n in range(120)] * 6 + [str(broken)], len(names)
