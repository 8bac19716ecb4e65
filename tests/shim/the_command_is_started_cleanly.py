"""The explanation: a clean environment, no descriptor of the program's, standard output on its stderr, once at the end and once
early, and only by the root. One line instead when the command cannot be started; nothing with CUDIAG_PRINT=off."""
from twin import *

if MACHINE:
    cannot_run_here("the command is not built for this machine")
bed = Bed()
program = bed.program("ends.c")
broken = bed.broken()
place = bed.with_stand_in()
secret = {"CUDIAG_PRINT": "auto", "LD_LIBRARY_PATH": "/nowhere", "HF_TOKEN": "secret", "PYTHONPATH": "/nowhere", "VIRTUAL_ENV": "/venv",
          "TERM": "dumb", "CUDIAG_SOME_TOKEN": "secret"}


def started():
    """What each stand-in was started with, in the order of their pids; they are taken away."""
    found = []
    for path in sorted(bed.root.glob("stand-in.*"), key=lambda p: int(p.suffix[1:])):
        lines = [line.split(" ", 1) for line in path.read_text().splitlines()]
        found.append({word: [rest for first, rest in lines if first == word] for word in ("argument", "variable", "descriptor")})
        path.unlink()
    return found


runs = bed.root / "runs"
opened = open("/dev/null")
ended = bed.run(program, "/absent/probe.so", "exit", 7, env=secret, pass_fds=[opened.fileno()])
assert ended.status == 7 and ended.stderr == "stand-in speaks\n" and "stand-in" not in ended.stdout, ended
one, = started()
run, = runs.iterdir()
pid = run.name.split("-")[-1]
assert one["argument"] == [str(place / "cudiag"), "in-place", "--run", str(run), "--pid", pid, "--when", "exit"], one
names = {variable.split("=")[0] for variable in one["variable"]}
assert {"CUDIAG_DIR", "CUDIAG_PRINT", "VIRTUAL_ENV", "TERM", "PATH", "HOME"} <= names, names
assert not names & {"LD_PRELOAD", "LD_LIBRARY_PATH", "HF_TOKEN", "PYTHONPATH", "CUDIAG_SOME_TOKEN"}, names
assert [d.split()[0] for d in one["descriptor"]] == ["0", "1", "2"], one["descriptor"]
assert one["descriptor"][0] == "0 /dev/null" and one["descriptor"][1].split()[1] == one["descriptor"][2].split()[1], one
variables = {entry["name"]: entry["value"] for entry in read(next(run.glob("*.rec"))) if entry.kind == "variable"}
assert variables["LD_LIBRARY_PATH"] == "/nowhere" and not any("TOKEN" in name for name in variables), variables

# Breakage is told of early, and at the end.
ended = bed.run(program, broken, "exit", 0, env=secret)
assert ended.status == 0 and ended.stderr == "stand-in speaks\n" * 2, ended
assert sorted(s["argument"][-1] for s in started()) == ["early", "exit"]

# A good end with probes, a bad one with nothing recorded, and silence on request.
for load, status, more in (("/absent/probe.so", 0, {}), ("", 7, {}), (broken, 7, {"CUDIAG_PRINT": "off"}), (broken, 7, {"CUDIAG": "off"})):
    ended = bed.run(program, load, "exit", status, env={**secret, **more})
    assert ended.status == status and ended.stderr == "" and started() == [], (load, status, more, ended)

# A child is no root; a shell that only starts others is none either.
ended = bed.run("sh", "-c", f"{program} /absent/probe.so exit 7; true", env=secret)
assert ended == (0, ended.stdout, "stand-in speaks\n") and len(started()) == 1, ended
parent = bed.root / "parent.py"
parent.write_text(f"import subprocess, sys\nsubprocess.run([{str(program)!r}, '/absent/probe.so', 'exit', '7'])\nsys.exit(int(sys.argv[1]))\n")
for status in (0, 3):
    ended = bed.run(sys.executable, parent, status, env=secret)
    assert ended.status == status and ended.stderr == "stand-in speaks\n" * (status != 0), ended
    assert [s["argument"][-1] for s in started()] == ["exit"] * (status != 0)

# No command, or one that does not work: one line that says where the record is.
for contents in (None, "", "#!/absent/interpreter\n", "#!/bin/sh\nkill -9 $$\n"):
    (place / "cudiag").unlink(missing_ok=True)
    if contents is not None:
        (place / "cudiag").write_text(contents)
        (place / "cudiag").chmod(0o755)
    ended = bed.run(program, "/absent/probe.so", "exit", 7, env=secret)
    assert ended.status == 7 and ended.stderr.count("\n") == 1, ended
    assert ended.stderr.startswith(f"cudiag: recorded in {runs}/") and "cudiag report" in ended.stderr, ended

# Where nothing can be recorded: nothing is said of a probe, and one line of breakage.
for load, lines in (("/absent/probe.so", 0), (broken, 1)):
    ended = bed.run(program, load, "exit", 7, env=secret, runs=Path("/proc/nowhere"))
    assert ended.status == 7 and ended.stderr.count("\n") == lines, ended
    assert lines == 0 or ended.stderr.startswith("cudiag: cannot record in /proc/nowhere/"), ended
