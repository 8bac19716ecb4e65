"""cudiag report --html, --perfetto and --tensorboard of a run that was profiled over doubles of the driver and of CUPTI; and of one that was not."""
import subprocess

import fake_driver
from twin import *

bed = Bed()
program = bed.program("profiled.c")
driver = fake_driver.build(bed)
cupti = bed.shared("libcupti.so.13", "fake_cupti.c")
client = bed.shared("libclient.so", "cupti_client.c", cupti, f"-Wl,-rpath,{bed.root}")
if not (BIN / "libcudiag-cupti.so").exists():
    cannot_run_here("no libcudiag-cupti.so")


def report(run, *words, language="en"):
    done = subprocess.run([BIN / "cudiag", "report", run, *map(str, words)], capture_output=True, text=True, timeout=60,
                          env={**os.environ, "CUDIAG_LANG": language})
    return done.returncode, done.stdout, done.stderr


runs = bed.root / "runs"
bed.run(program, driver, cupti, client, "look", "40", "copy", env={"FAKE_DRIVER_QUIET": 1, "CUDIAG_PROFILE": "launches"}, runs=runs)
run, = (directory for directory in runs.iterdir() if list(directory.glob("*.prof")))
page, trace, events = bed.root / "profile.html", bed.root / "profile.pftrace", bed.root / "made/events"
status, stdout, stderr = report(run, "--html", page, "--perfetto", trace, "--tensorboard", events)
assert (status, stdout) == (0, ""), (status, stdout, stderr)
assert page.read_text().startswith("<!DOCTYPE html>") and run.name in page.read_text()
assert trace.read_bytes()[0] == 0x0a and b"GPU 0, stream" in trace.read_bytes()
written, = events.iterdir()
assert written.name.startswith("events.out.tfevents.") and b"brain.Event:2" in written.read_bytes()
assert [line.split(": ")[1] for line in stderr.splitlines()] == [str(page), str(trace), str(written)], stderr

in_chinese = bed.root / "chinese.html", bed.root / "chinese.pftrace"
status, stdout, stderr = report(run, "--html", in_chinese[0], "--perfetto", in_chinese[1], language="zh")
assert (status, stdout) == (0, ""), (status, stdout, stderr)
assert '<html lang="zh-CN">' in in_chinese[0].read_text() and "优化器" in in_chinese[0].read_text()
assert in_chinese[1].read_bytes() == trace.read_bytes(), "a trace is the same in every language"

status, _, stderr = report(run, "--html", bed.root / "none/profile.html")
assert status == 3 and "cudiag: cannot write" in stderr and "No such file or directory" in stderr, stderr
status, _, stderr = report(run, "--tensorboard", page / "events")
assert status == 3 and "cannot make the directory" in stderr, stderr

for recording in run.glob("*.prof"):
    recording.unlink()
for words in (("--html", page), ("--perfetto", trace), ("--tensorboard", events)):
    status, stdout, stderr = report(run, *words)
    assert status == 3 and len(stderr.splitlines()) == 1, (status, stdout, stderr)
