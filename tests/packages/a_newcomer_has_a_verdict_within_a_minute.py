"""A clean Debian 12 with a Python environment that is broken as they come: from the package to the verdict, the fix and a program that
works, by the commands of docs/howto/install.md. What is timed is all that cudiag is about; the environment is the newcomer's own."""
import time

from packages import *
from roots import Try

with Try("bookworm") as inside:
    variables = inside.network()
    inside.must("python3", "-m", "venv", "/venv")
    got = inside.run("/venv/bin/pip", "install", "-q", "--no-deps", "numpy", "nvidia-resiliency-ext==0.4.1", **variables)
    if got.status != 0:
        cannot_run_here(f"pip reaches no PyPI from a root: {got.stderr.strip().splitlines()[-1:]}")
    deb = inside.put(package(".deb"), at="/tmp")
    program = ["/venv/bin/python", "/usr/share/doc/cudiag/examples/finetune.py"]

    times = []

    def timed(what, *command, **more):
        begin = time.monotonic()
        done = inside.run(*command, **(variables | more))
        times.append((time.monotonic() - begin, what))
        return done

    installed = timed("install the package", "dpkg", "-i", deb)
    assert installed.status == 0, installed
    broken = timed("run the program under it", *program, LD_PRELOAD="libcudiag.so")
    assert broken.status == 1 and "cudiag: error loader-missing-library" in broken.stderr, broken
    told = timed("read the report", "cudiag", "report", "--json")
    fix = next(fix["command"] for finding in json.loads(told.stdout)["findings"] for fix in finding["fixes"] if fix["command"])
    to_verdict = sum(seconds for seconds, _ in times)
    healed = timed(f"apply the fix: {fix}", "sh", "-c", fix + " && LD_PRELOAD=libcudiag.so " + " ".join(program))
    assert healed.status == 0 and "loss" in healed.stdout and "cudiag" not in healed.stderr, (fix, healed)
    timed("ask the doctor", "cudiag", "doctor", "--python", "/venv/bin/python")
    for seconds, what in times:
        print(f"{seconds:6.1f} s  {what}")
    print(f"{to_verdict:6.1f} s  from the package to the verdict, {sum(seconds for seconds, _ in times):.1f} s in all")
    assert to_verdict < 60, times
