"""TensorBoard's own reader, which checks every checksum, finds the scalars with their steps and times."""
from cudiag_scenario import *

world = World("tensorboard==2.21.0", "protobuf==7.36.2", "numpy", "absl-py", "six", "packaging", "typing_extensions", "grpcio", "setuptools")
events = world.root / "events"
events.mkdir()
subprocess.run([os.environ["CUDIAG_WRITE_PROFILE_FILES"], events], check=True)
READ = """
import sys
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
reader = EventAccumulator(sys.argv[1])
reader.Reload()
tags = reader.Tags()["scalars"]
assert sorted(tags) == ["AdamW/device_busy_ms", "AdamW/device_idle_ms", "AdamW/host_ms", "AdamW/launches"], tags
busy = reader.Scalars("AdamW/device_busy_ms")
assert [s.step for s in busy] == list(range(40)), busy
assert all(abs(s.value - 23.4) < 1e-4 for s in busy), busy[0]
assert abs(busy[1].wall_time - busy[0].wall_time - 0.07) < 1e-6 and abs(busy[0].wall_time - 1.78e9) < 1
assert reader.Scalars("AdamW/launches")[3].value == 13
print(len(tags), "scalars of", len(busy), "steps")
"""
status, stdout, stderr = world.alone(world.python, "-c", READ, events)
print(stdout)
assert status == 0, stderr
