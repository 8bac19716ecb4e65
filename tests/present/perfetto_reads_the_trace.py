"""perfetto's own package reads the trace: its schema knows every field, and its trace_processor, where it can be had, every slice."""
from cudiag_scenario import *

world = World("perfetto==0.59.1", "protobuf==7.36.2")
subprocess.run([os.environ["CUDIAG_WRITE_PROFILE_FILES"], world.root], check=True)
READ = """
import collections, sys
from perfetto.protos.perfetto.trace import perfetto_trace_pb2 as pb
trace = pb.Trace()
with open(sys.argv[1], "rb") as file:
    trace.ParseFromString(file.read())
def unknown(message):
    from google.protobuf.unknown_fields import UnknownFieldSet
    if len(UnknownFieldSet(message)):
        raise SystemExit(f"fields that the schema does not know: {message}")
    for field, value in message.ListFields():
        if field.type == field.TYPE_MESSAGE:
            for each in (value if field.is_repeated else [value]):
                unknown(each)
for packet in trace.packet:
    unknown(packet)
names = {p.track_descriptor.uuid: p.track_descriptor for p in trace.packet if p.HasField("track_descriptor")}
depth, slices, counters, last = collections.Counter(), collections.Counter(), [], {}
for p in trace.packet:
    if not p.HasField("track_event"):
        continue
    e = p.track_event
    assert e.track_uuid in names, e
    assert p.timestamp >= last.get(e.track_uuid, 0), "not in time"
    last[e.track_uuid] = p.timestamp
    if e.type == e.TYPE_SLICE_BEGIN:
        depth[e.track_uuid] += 1
        slices[names[e.track_uuid].name, e.categories[0]] += 1
    elif e.type == e.TYPE_SLICE_END:
        depth[e.track_uuid] -= 1
    elif e.type == e.TYPE_COUNTER:
        counters.append(e.double_counter_value)
assert not any(depth.values()), depth
process, = (d for d in names.values() if d.HasField("process"))
assert process.process.pid == 4242
print(dict(slices))
assert slices == {("AdamW (foreach) step, host", "optimizer"): 40, ("GPU 0, stream 7", "kernel"): 40 * 13, ("GPU 0, stream 9", "copy"): 40}, slices
assert len(counters) == 40 and abs(counters[5] - 13 * 1.8) < 1e-9, counters[5]
assert trace.packet[1].timestamp or trace.packet[0].HasField("clock_snapshot")
"""
status, stdout, stderr = world.alone(world.python, "-c", READ, world.root / "profile.pftrace")
print(stdout)
assert status == 0, stderr

PROCESS = """
import sys
from perfetto.trace_processor import TraceProcessor
try:
    reader = TraceProcessor(trace=sys.argv[1])
except Exception as error:
    raise SystemExit(f"no trace_processor here: {type(error).__name__}")
rows = {r.name: (r.n, r.ms) for r in reader.query("select category as name, count() as n, sum(dur) / 1e6 as ms from slice group by category")}
print(rows)
assert rows["kernel"][0] == 520 and rows["copy"][0] == 40 and rows["optimizer"] == (40, 40.0), rows
errors = {r.name: r.value for r in reader.query("select name, value from stats where severity = 'error' and value > 0")}
assert not errors, errors
print("read by trace_processor")
"""
status, stdout, stderr = world.alone(world.python, "-c", PROCESS, world.root / "profile.pftrace")
print(stdout, stderr[-300:])
assert status == 0 or "no trace_processor here" in stderr, stderr
