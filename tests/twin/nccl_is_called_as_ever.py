"""Two NCCLs in a process (a wheel may bring its own, by another SONAME), and callers linked in every way (lazily, read-only, as torch is, without a linkage table, by dlsym): each
calls the one that it would call alone, with its own arguments; what fails is recorded with the words of that very library. Where no NCCL is,
none is found."""
from twin import *

bed = Bed()
NAMES = {"one": "libnccl.so.2", "two": "libnccl-3f2a01bc.so.2"}
nccl = {which: bed.build(f"{which}/{name}", "fake_nccl.c", f'-DWHICH="{which}"', "-shared", f"-Wl,-soname,{name}") for which, name in NAMES.items()}
WAYS = {"lazily": ["-Wl,-z,lazy"], "at_once": ["-Wl,-z,now"], "as_torch": ["-Wl,-z,lazy"], "without_table": ["-fno-plt", "-Wl,-z,norelro"]}


def caller(which, way):
    return bed.build(f"{which}/lib{way}.so", "calls_nccl.c", f'-DCALLER="{way} with {which}"', "-shared", *WAYS[way],
                     f"-L{bed.root / which}", f"-l:{NAMES[which]}", f"-Wl,--disable-new-dtags,-rpath,{bed.root / which}")


callers = {(which, way): caller(which, way) for which in nccl for way in WAYS}
program = bed.program("opens_callers.c")
linked = {way: bed.build(f"program_{way}", "opens_callers.c", TESTS / "victims" / "calls_nccl.c", '-DCALLER="the program"', "-rdynamic", *WAYS[way], "-ldl",
                         f"-L{bed.root / 'one'}", "-l:libnccl.so.2", f"-Wl,-rpath,{bed.root / 'one'}") for way in WAYS}
both = list(nccl)
every = [word for (which, way), path in callers.items() for word in ("lazy" if way == "lazily" else "now", path)]


def calls(recorded):
    """Those that returned; what makes a communicator is noted before that as well."""
    entries = recorded.recorded("nccl_call")
    made = [e["name"] for e in entries if e["name"] == "ncclCommInitRank"]
    assert made.count("ncclCommInitRank") == 2 * sum(e["error"] is None for e in entries), entries
    return [(entry["name"], entry["error"], entry["path"]) for entry in entries if entry["error"] is not None]


# Where no NCCL is, none is found; and a program that is well leaves nothing.
alone = bed.twin(program)
assert alone.under.stdout == "weak 0, default 0, next 0, program 0\n" and alone.recordings() == [], alone.under.stdout
well = bed.twin(program, *every, "sym", nccl["one"], "sym", nccl["two"])
assert well.recordings() == [] and "ncclCommSplit absent" in well.under.stdout, well.under.stdout
for way in WAYS:
    assert bed.twin(linked[way]).recordings() == [], way

# Each caller its own: what is made, aborted and fails is told of the library that was called.
fails = {"FAKE_NCCL_FAILS": "ncclAllReduce=2 ncclGetUniqueId=5", "FAKE_NCCL_ASYNC": 6}
seen = {}
for (which, way), path in callers.items():
    failed = bed.twin(program, "lazy" if way == "lazily" else "now", callers["one" if which == "two" else "two", "at_once"],
                      "lazy" if way == "lazily" else "now", path, "status", 3, env=fails)
    seen[which, way] = [call for call in calls(failed) if call[2] == str(nccl[which])]
    for entry in failed.recorded("nccl_call"):
        name = Path(entry["path"]).parent.name
        if entry["error"]:
            assert (entry["text"], entry["last_error"]) == (f"words for {entry['error']} of {name}", f"last warning of {name}"), entry
        if entry["name"] == "ncclCommInitRank":
            assert (entry["rank"], entry["ranks"], entry["error"] or 0) == (1, 2, 0), entry
expected = ["ncclGetUniqueId", "ncclCommInitRank", "ncclAllReduce", "ncclCommGetAsyncError", "ncclCommAbort"]
for (which, way), found in seen.items():
    # Of an object that came late, what is read-only stays as it is: that is not seen, and its calls are as ever. A call that is not bound yet
    # could go to either of two libraries.
    wanted = [] if way in ("at_once", "lazily") else expected
    assert [name for name, _, _ in found] == wanted, (which, way, found)
    assert not found or [error for _, error, _ in found] == [5, 0, 2, 6, 0], found

# Of one library alone it is plain where a call will go; and at the start all is relocated.
lazily = bed.twin(program, "lazy", callers["one", "lazily"], "status", 3, env=fails)
assert [name for name, _, _ in calls(lazily)] == expected, calls(lazily)
for way in WAYS:
    failed = bed.twin(linked[way], "status", 3, env=fails)
    if MACHINE and way == "at_once":
        continue                                # qemu has threads of its own: what is read-only is left alone then
    assert [name for name, _, _ in calls(failed)] == expected, (way, calls(failed))
    if not MACHINE:
        assert all(entry["caller"] == str(linked[way]) for entry in failed.recorded("nccl_call")), way

# By dlsym with a handle.
asked = bed.twin(program, "sym", nccl["two"], "sym", nccl["one"], "status", 3, env={"FAKE_NCCL_FAILS": "ncclCommInitRank=1"})
assert calls(asked) == [("ncclCommInitRank", 1, str(nccl["two"])), ("ncclCommInitRank", 1, str(nccl["one"]))], calls(asked)
assert [entry["text"] for entry in asked.recorded("nccl_call") if entry["error"]] == ["words for 1 of two", "words for 1 of one"]
# Somebody else stands before NCCL already: a call that is bound lazily will go there, and does.
if not MACHINE:
    before = bed.build("before/libbefore.so", "fake_nccl.c", '-DWHICH="before"', "-shared", "-Wl,-soname,libbefore.so")
    stood = bed.twin(linked["lazily"], "status", 3, env={**fails, "LD_PRELOAD": before})
    assert "of before" in stood.under.stdout and not any(path == str(nccl["one"]) for _, _, path in calls(stood)), stood.under.stdout

assert bed.twin(program, *every, "status", 3, env={**fails, "CUDIAG": "off"}).recordings() == []
# A rank waits for the others until somebody kills it: where it waited is there.
hung = bed.run(program, "sym", nccl["one"], env={"FAKE_NCCL_HANGS": 1}, runs=bed.root / "hung")
entered, = [entry for path in (bed.root / "hung").glob("*/*.rec") for entry in read(path) if entry.kind == "nccl_call"]
assert (hung.status in (-9, 137)) and (entered["name"], entered["error"], entered["rank"], entered["ranks"]) == ("ncclCommInitRank", None, 2, 3), entered
