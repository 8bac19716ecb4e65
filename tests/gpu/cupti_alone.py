"""What CUPTI's records cost a training step without us: the floor of a profile's own cost.

    python3 tests/gpu/cupti_alone.py [WIDTH DEPTH BATCH [STEPS]]        256 40 64 40: the host decides; 4096 24 4096 20: the GPU does

Blocks of STEPS steps without records, with those of kernels, and with kernels, copies and fills, in turn, six of each; medians. Needs a GPU, torch
with its libcupti, and a C compiler; exit status 77 without them.
"""
import ctypes
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

try:
    import torch
    library = sorted((pathlib.Path(torch.__file__).parent.parent / "nvidia").glob("*/lib/libcupti.so*"))[0]
    assert torch.cuda.is_available()
except (ImportError, IndexError, AssertionError):
    print("cannot run here: no torch with libcupti and a GPU")
    sys.exit(77)
width, depth, batch, steps = [int(word) for word in sys.argv[1:]] + [256, 40, 64, 40][len(sys.argv) - 1:]
with tempfile.TemporaryDirectory() as directory:
    subprocess.run(["cc", "-shared", "-fPIC", "-O2", "-o", f"{directory}/buffers.so", pathlib.Path(__file__).with_name("cupti_buffers.c")], check=True)
    buffers = ctypes.CDLL(f"{directory}/buffers.so")
cupti = ctypes.CDLL(str(library))
assert cupti.cuptiActivityRegisterCallbacks(buffers.request, buffers.complete) == 0
KERNELS, COPIES, FILLS = 10, 1, 2        # CUpti_ActivityKind (cupti_activity.h): CONCURRENT_KERNEL, MEMCPY, MEMSET

torch.manual_seed(0)
model = torch.nn.Sequential(*[m for _ in range(depth) for m in (torch.nn.Linear(width, width), torch.nn.GELU())]).cuda()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True)
x = torch.randn(batch, width, device="cuda")


def step():
    begin = time.perf_counter()
    optimizer.zero_grad()
    with torch.autocast("cuda", torch.bfloat16):
        loss = model(x).square().mean()
    loss.backward()
    optimizer.step()
    torch.cuda.synchronize()
    return (time.perf_counter() - begin) * 1e3


def block(kinds):
    for kind in kinds:
        assert cupti.cuptiActivityEnable(kind) == 0
    step()
    took = statistics.median(step() for _ in range(steps))
    for kind in kinds:
        assert cupti.cuptiActivityDisable(kind) == 0
    cupti.cuptiActivityFlushAll(1)
    return took


for _ in range(30):
    step()
rows = {(): [], (KERNELS,): [], (KERNELS, COPIES, FILLS): []}
for _ in range(6):
    for kinds, took in rows.items():
        before = buffers.recorded_bytes()
        took.append(block(kinds))
        assert (buffers.recorded_bytes() > before) == bool(kinds), "records where there are to be none, or none where there are"
bare = statistics.median(rows[()])
for kinds, took in rows.items():
    print(f"{kinds or 'no records'}: {statistics.median(took):.3f} ms a step, {100 * (statistics.median(took) / bare - 1):+.2f} %", [round(each, 2) for each in took])
