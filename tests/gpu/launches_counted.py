"""Launches that are recorded against CUPTI's own count, for every way that programs launch by; and tools that must work beside us.

    python3 tests/gpu/launches_counted.py BIN PROGRAMS [counts] [tools]

PROGRAMS: tests/gpu/faults.cu as `faults` (-lineinfo, for cuda-gdb) and `faults-shared` (-cudart shared), tests/gpu/cupti_count.c as `cupti_count.so`. Exit status 77 without a GPU.
"""
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

BIN, PROGRAMS = (pathlib.Path(argument).resolve() for argument in sys.argv[1:3])
SHIM, DUMP = BIN / "libcudiag.so", BIN.parent / "tests/shim/cudiag_dump_recording"
failed = []

PYTHON = {
    "torch, eager, cuBLAS and cuDNN": """
import torch
x = torch.randn(256, 256, device='cuda'); w = torch.nn.Linear(256, 256, device='cuda'); o = torch.optim.AdamW(w.parameters(), foreach=True)
c = torch.nn.Conv2d(3, 8, 3, device='cuda'); im = torch.randn(4, 3, 32, 32, device='cuda')
for _ in range(20):
    o.zero_grad(); (w(x).square().mean() + c(im).mean()).backward(); o.step()
""",
    "torch, four streams and two threads": """
import threading, torch
x = torch.ones(1000, device='cuda')
def work():
    for s in [torch.cuda.Stream() for _ in range(4)]:
        with torch.cuda.stream(s):
            for _ in range(50): y = x * 2 + 1
threads = [threading.Thread(target=work) for _ in range(2)]
[t.start() for t in threads]; [t.join() for t in threads]
""",
    "torch, a graph of 20 kernels replayed 10 times": """
import torch
st = torch.zeros(100, device='cuda'); st += 1; torch.cuda.synchronize()
g = torch.cuda.CUDAGraph()
with torch.cuda.graph(g):
    for _ in range(20): st += 1
for _ in range(10): g.replay()
""",
    "torch.compile (Triton)": "import torch\nf = torch.compile(lambda t: (t.sin() + t.cos()).sum(1))\nx = torch.randn(512, 512, device='cuda')\nfor _ in range(20): f(x)",
    "CuPy": """
import cupy
k = cupy.RawKernel('extern "C" __global__ void f(float* x) { x[threadIdx.x] += 1; }', 'f')
x = cupy.zeros(256, cupy.float32); a = cupy.random.rand(128, 128)
for _ in range(20): k((1,), (256,), (x,)); x += 1; a = a @ a / 128; cupy.sort(x); x.sum()
""",
    "JAX": """
import jax, jax.numpy as jnp
f = jax.jit(lambda x: jnp.sin(x) @ jnp.cos(x).T + 1); x = jnp.ones((256, 256))
for _ in range(20): x = f(x) / 256
@jax.jit
def g(x):
    for i in range(20): x = jnp.sort(x * 1.01 + i, axis=0)
    return x
for _ in range(5): x = g(x)
x.block_until_ready()
""",
}
# A process that ends well leaves no recording: these fail on purpose, when all is done.
LAST = {"torch": "\nimport torch, sys\ntorch.cuda.synchronize()\nsys.exit(3)", "CuPy": "\nimport sys\ncupy.cuda.Device().synchronize()\nsys.exit(3)", "JAX": "\nimport sys\nsys.exit(3)"}


def environment(directory, shim=True, **more):
    env = {k: v for k, v in os.environ.items() if not k.startswith("CUDIAG")} | {"CUDIAG_DIR": directory, "CUDIAG_PRINT": "off", **more}
    return env | ({"LD_PRELOAD": str(SHIM)} if shim else {})


def recorded(directory):
    total, graphs, lost = 0, {}, 0
    recordings = list(pathlib.Path(directory).rglob("*.rec"))
    for path in recordings:
        entries = [json.loads(line) for line in subprocess.run([DUMP, path], capture_output=True, text=True).stdout.splitlines()]
        for entry in entries:
            if entry["kind"] == "cuda_graph":
                fields = dict(map(tuple, entry["fields"]))
                graphs[fields["handle"]] = fields["count"]
            if entry["kind"] == "hot":
                fields = {field: value for field, value in entry["fields"]}
                if fields["kind"] == 4:  # a failed call: words[4] is 1 of a launch that the driver refused
                    total -= fields["words"][4] == 1
                elif not fields["flags"] & 1:
                    total += 1 if fields["kind"] == 1 else graphs.get(fields["words"][0], 0) if fields["kind"] == 2 else 0
    return total, len(recordings)


def counted(name, argv):
    with tempfile.TemporaryDirectory() as directory:
        count = pathlib.Path(directory) / "count"
        env = environment(directory, CUDA_INJECTION64_PATH=str(PROGRAMS / "cupti_count.so"), CUPTI_COUNT=str(count), CUDIAG_RING_MB="64",
                          XLA_PYTHON_CLIENT_PREALLOCATE="false")
        done = subprocess.run([str(a) for a in argv], env=env, capture_output=True, text=True)
        if not count.exists():
            print(f"not run  {name}: {(done.stderr or done.stdout)[-300:]}")
            failed.append(name)
            return
        kernels, dropped = map(int, count.read_text().split())
        seen, recordings = recorded(directory)
        good = seen == kernels and kernels > 0 and dropped == 0
        print(f"{'equal ' if good else 'DIFFER'}  {name}: recorded {seen}, CUPTI {kernels} (dropped {dropped}); status {done.returncode}, recordings {recordings}", flush=True)
        if not good:
            failed.append(name)


def counts():
    # An error at the end, so that the recording stays: a block of 2048 threads, which launches nothing.
    for program in ("faults", "faults-shared"):
        if (PROGRAMS / program).exists():
            counted(f"nvcc, {program}", [PROGRAMS / program, "block", 4, 3000, 0])
    for name, code in PYTHON.items():
        last = next(text for key, text in LAST.items() if name.startswith(key))
        counted(name, [sys.executable, "-c", code + last])


def beside(name, argv, pattern):
    """The same lines of a tool's output with and without the shim, and the same status."""
    got = []
    for shim in (False, True):
        with tempfile.TemporaryDirectory() as directory:
            done = subprocess.run([str(a) for a in argv], env=environment(directory, shim), capture_output=True, text=True, timeout=120)
            got.append((done.returncode, re.findall(pattern, done.stdout + done.stderr)))
    good = got[0] == got[1] and got[0][1]
    print(f"{'equal ' if good else 'DIFFER'}  {name}: {str(got[0])[:160]}" + ("" if good else f" | under the shim: {str(got[1])[:300]}"), flush=True)
    if not good:
        print(done.stdout[-1500:], done.stderr[-1500:], sep="\n")
        failed.append(name)


def tools():
    fault = PROGRAMS / "faults"
    for tool, argv, pattern in (
            ("compute-sanitizer", ["--tool", "memcheck", fault, "oob", 1, 10, 10], r"Invalid __global__ \w+ of size.*|ERROR SUMMARY: .*"),
            ("cuda-gdb", ["-batch", "-ex", "run", "-ex", "bt", "--args", fault, "trap", 1, 10, 10], r"CUDA_EXCEPTION_\w+.*|traps\w*<<<.*?>>>"),
            ("ncu", ["--launch-count", 3, "--metrics", "sm__cycles_elapsed.max", fault, "fine", 1, 10, 10], r"harmless\([^)]*\) \([^)]*\)|==PROF== Profiling \"\w+\""),
            ("nsys", ["profile", "--stats=true", "-o", f"{tempfile.gettempdir()}/beside", "--force-overwrite=true", fault, "fine", 1, 10, 10], r"\s+\d+\s.*harmless")):
        found = shutil.which(tool) or shutil.which(tool, path="/usr/local/cuda/bin")
        if found is None:
            print(f"absent   {tool}")
            continue
        beside(tool, [found, *argv], pattern)


if subprocess.run(["nvidia-smi", "-L"], capture_output=True).returncode:
    print("cannot run here: no GPU")
    sys.exit(77)
for part in sys.argv[3:] or ["counts", "tools"]:
    globals()[part]()
if failed:
    sys.exit(f"not well: {failed}")
