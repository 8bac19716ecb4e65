"""What the shim costs a launch, and a training step, on a real GPU: with and without it in turn in one process (tests/gpu/toggle.c).

    python3 tests/gpu/launch_cost.py BIN PROGRAMS [launch] [host_step] [gpu_step]

PROGRAMS: a directory with tests/gpu/faults.cu as `faults`, and tests/gpu/toggle.c as `toggle.so`. In the environment, PROCESSES: how many
launch in each way (12); SECONDS: how long each training step is compared (40; some 300 resolve a thousandth where the GPU decides). Exit status 77
without a GPU.
"""
import os
import pathlib
import re
import statistics
import subprocess
import sys
import tempfile

BIN, PROGRAMS = (pathlib.Path(argument).resolve() for argument in sys.argv[1:3])


def run(argv, **more):
    env = {k: v for k, v in os.environ.items() if not k.startswith("CUDIAG")}
    env |= {"LD_PRELOAD": f"{PROGRAMS / 'toggle.so'} {BIN / 'libcudiag.so'}", **more}
    return subprocess.run([str(a) for a in argv], env=env, capture_output=True, text=True)


def told(name, values):
    print(f"   {name}: mean {statistics.mean(values):+.1f} ns, its standard error {statistics.stdev(values) / len(values) ** .5:.1f}, "
          f"{min(values):+.1f} to {max(values):+.1f} ({len(values)} processes)", flush=True)


def launch():
    """Processes differ by far more than the pairs of one: the median of each counts as one, and the ways take turns."""
    ways = {"as it is": {}, "nothing can be recorded: the wrapper alone": {"CUDIAG_DIR": "/proc/nowhere"},
            "the recording in memory (/dev/shm)": {}, "CUDIAG_TRACK=1": {"CUDIAG_TRACK": "1"}}
    took, others = {way: [] for way in ways}, ([], [])
    for _ in range(int(os.environ.get("PROCESSES", "12"))):
        for way, more in ways.items():
            with tempfile.TemporaryDirectory(dir="/dev/shm" if "/dev/shm" in way else None) as directory:
                done = run(["taskset", "-c", "2", PROGRAMS / "faults", "toggled", 1, 120], **{"CUDIAG_DIR": directory, **more})
            if done.returncode:
                print(way, done.stdout, done.stderr[-600:])
                return 1
            medians = [float(each) for each in re.findall(r"median ([+-][\d.]+) ns", done.stdout)]
            took[way].append(medians[0])
            for values, median in zip(others, medians[1:]):
                values.append(median)
    print("--- an empty launch\n   " + done.stdout.strip().splitlines()[-1])
    for way, values in [*took.items(), ("a function that only hands the launch on", others[0]), ("nothing (the null comparison)", others[1])]:
        told(way, values)
    return 0


STEP = """
import ctypes, statistics, sys, time, torch
toggle = ctypes.CDLL(None).cudiag_test_toggle
width, layers, batch = int(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
torch.manual_seed(0)
class Block(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = torch.nn.LayerNorm(width), torch.nn.LayerNorm(width)
        self.qkv, self.out = torch.nn.Linear(width, 3 * width), torch.nn.Linear(width, width)
        self.up, self.down = torch.nn.Linear(width, 4 * width), torch.nn.Linear(4 * width, width)
    def forward(self, x):
        q, k, v = (t.view(*x.shape[:2], -1, 64).transpose(1, 2) for t in self.qkv(self.a(x)).chunk(3, -1))
        x = x + self.out(torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).reshape(x.shape))
        return x + self.down(torch.nn.functional.gelu(self.up(self.b(x))))
model = torch.nn.Sequential(torch.nn.Embedding(8192, width), *(Block() for _ in range(layers)), torch.nn.Linear(width, 8192)).cuda()
optimizer = torch.optim.AdamW(model.parameters(), fused=True)
tokens = torch.randint(8192, (batch, 512), device="cuda")
def step():
    optimizer.zero_grad()
    with torch.autocast("cuda", torch.bfloat16):
        loss = torch.nn.functional.cross_entropy(model(tokens).flatten(0, 1).float(), tokens.flatten())
    loss.backward()
    optimizer.step()
    torch.cuda.synchronize()
for _ in range(20): step()
switched = toggle(1)
assert switched, "nothing to toggle"
added, null, bare = [], [], []
end = time.monotonic() + float(sys.argv[4])
pair = 0
while time.monotonic() < end:
    took = [0] * 4
    for k in range(4):
        which = (k + pair) % 4
        toggle(1 if which == 0 else 0)
        begin = time.perf_counter()
        step()
        took[which] = time.perf_counter() - begin
    added.append(took[0] / took[1] - 1); null.append(took[2] / took[3] - 1); bare.append(took[1])
    pair += 1
def told(name, values):
    values.sort()
    n = len(values)
    low, high = values[n // 4], values[n - n // 4 - 1]
    print(f"  {name}: median {100 * values[n // 2]:+.3f} %, quartiles {100 * low:+.2f} to {100 * high:+.2f}, its own uncertainty +-{157 * (high - low) / n ** .5:.3f} ({n} pairs)")
print(f"  a step of {1000 * statistics.median(bare):.2f} ms, {switched} functions switched")
told("the shim", added)
told("nothing (the null comparison)", null)
"""


def step(name, *words):
    with tempfile.TemporaryDirectory() as directory:
        print(f"--- a training step of a small GPT (bf16, fused AdamW), {name}", flush=True)
        done = run([sys.executable, "-c", STEP, *words, os.environ.get("SECONDS", "40")], CUDIAG_DIR=directory)
        print(done.stdout.strip(), done.stderr.strip()[-600:] if done.returncode else "", sep="\n", flush=True)
        return done.returncode


def host_step():
    return step("the host decides", 512, 8, 2)


def gpu_step():
    return step("the GPU decides", 1024, 12, 24)


if subprocess.run(["nvidia-smi", "-L"], capture_output=True).returncode:
    print("cannot run here: no GPU")
    sys.exit(77)
sys.exit(max([globals()[part]() for part in sys.argv[3:] or ["launch", "host_step", "gpu_step"]]))
