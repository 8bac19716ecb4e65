"""The run directory holds a record cut short, a record of noise and files of somebody else: what can be read is told, and
what cannot is named."""
from cudiag_scenario import *
from broken import fused_without_cudart

world, fused = fused_without_cudart()
run = world.under_shim(world.python, "-c", f"import ctypes; ctypes.CDLL('{fused}')")
run.said("loader-missing-library")
directory = run.run_directory()
record = next(directory.glob("*.rec"))
whole = record.read_bytes()

(directory / "1.rec").write_bytes(whole[:3000])
(directory / "2.rec").write_bytes(os.urandom(8192))
(directory / "3.rec").write_bytes(b"")
(directory / "notes.txt").write_text("somebody's notes")
told = world.cudiag("report", directory, runs=run.runs).ends_with(1, "libcudart.so.11.0")
for name in ("1.rec", "2.rec", "3.rec"):
    assert name in told.stderr, told

record.write_bytes(whole[:len(whole) // 2] + b"\xff" * (len(whole) - len(whole) // 2))
world.cudiag("report", directory, runs=run.runs)            # damaged in the middle: no crash
for cut in range(0, len(whole), max(1, len(whole) // 40)):
    record.write_bytes(whole[:cut])
    status = world.cudiag("report", directory, runs=run.runs).status
    assert status in (0, 1, 3), f"cut at {cut}: exit status {status}"

only = world.root / "runs-of-noise/0"
only.mkdir(parents=True)
(only / "2.rec").write_bytes(os.urandom(8192))
world.cudiag("report", only, runs=only.parent).ends_with(3, "2.rec")
