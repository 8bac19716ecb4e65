"""Faults planted on a real GPU: is each told as what it is, and the kernel named? (What a launch costs: launch_cost.py.)

    python3 tests/gpu/launches_and_faults.py BIN PROGRAMS [faults] [cores] [rank] [lines] [torch] [counts]

BIN: the directory of libcudiag.so and cudiag, in a build with the tests. PROGRAMS: a directory with tests/gpu/faults.cu built as `faults`
(nvcc -gencode arch=compute_90,code=sm_90), `faults-shared` (-cudart shared) and `faults-80` (sm_80 alone). Exit status 77 without a GPU.
"""
import concurrent.futures
import json
import os
import pathlib
import signal
import statistics
import subprocess
import sys
import tempfile
import time

BIN, PROGRAMS = (pathlib.Path(argument).resolve() for argument in sys.argv[1:3])
SHIM, COMMAND, DUMP = BIN / "libcudiag.so", BIN / "cudiag", BIN.parent / "tests/shim/cudiag_dump_recording"
failed = []


def libraries():
    """Where a shared cudart is: of torch's own wheels."""
    done = subprocess.run([sys.executable, "-c", "import glob, os, torch; print(':'.join(glob.glob(os.path.dirname(os.path.dirname(torch.__file__)) + '/nvidia/*/lib')))"],
                          capture_output=True, text=True)
    return done.stdout.strip()


LIBRARIES = libraries()


def run(argv, shim=True, kill_after=None, **more):
    with tempfile.TemporaryDirectory() as directory:
        env = {k: v for k, v in os.environ.items() if not k.startswith("CUDIAG")} | {"CUDIAG_DIR": directory, "LD_LIBRARY_PATH": LIBRARIES, **more}
        if shim:
            env["LD_PRELOAD"] = str(SHIM)
        process = subprocess.Popen([str(a) for a in argv], env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        if kill_after:
            time.sleep(kill_after)
            process.send_signal(signal.SIGKILL)
        out, err = process.communicate(timeout=240)
        records = list(pathlib.Path(directory).rglob("*.rec"))
        findings, dump, text = [], [], ""
        if records:
            report = subprocess.run([COMMAND, "report", "--json", records[0].parent], capture_output=True, text=True, env={**env, "LD_PRELOAD": ""})
            findings = json.loads(report.stdout)["findings"] if report.stdout else []
            dump = subprocess.run([DUMP, records[0]], capture_output=True, text=True).stdout.splitlines()
            text = subprocess.run([COMMAND, "report", records[0].parent], capture_output=True, text=True, env={**env, "LD_PRELOAD": ""}).stdout
        return process.returncode, out, err, findings, dump, text


def told(name, got, slug, kernel=None, at_most=None):
    status, out, err, findings, dump, text = got
    first = findings[0] if findings else {"slug": "nothing", "evidence": {}}
    suspects = first["evidence"].get("suspects") or first["evidence"].get("unfinished", [])
    rank = next((i + 1 for i, s in enumerate(suspects) if kernel and s["kernel"].startswith(kernel)), None)
    good = first["slug"] == slug and (not kernel or at_most is None or (rank is not None and rank <= at_most and len(suspects) <= 4))
    print(f"{'well' if good else 'WRONG'}  {name:<34} status {status}; {first['slug']}; {first.get('title', '')[:110]}; suspects {len(suspects)}, rank {rank};"
          f" log {first['evidence'].get('driver_log', '')}", flush=True)
    if not good:
        failed.append((name, err[-600:], text[:1500], [line for line in dump if '"hot"' not in line and "cuda_" in line][:6]))
    return rank


def faults():
    kinds = {"oob": "writes_out_of_bounds", "assert": "asserts", "misaligned": "reads_misaligned", "trap": "traps"}
    jobs = {}
    with concurrent.futures.ThreadPoolExecutor(6) as pool:
        for kind, kernel in kinds.items():
            for mode in ("", "CUDIAG_TRACK", "CUDIAG_SYNC"):
                for program in ("faults", "faults-shared") if kind == "oob" else ("faults",):
                    jobs[f"{program} {kind} {mode}"] = (pool.submit(run, [PROGRAMS / program, kind], **({mode: "1"} if mode else {})), "cuda-async-error",
                                                        kernel, {"": None, "CUDIAG_TRACK": 4, "CUDIAG_SYNC": 1}[mode])
        for kind, slug in (("block", "cuda-launch-config"), ("grid", "cuda-launch-config"), ("shared", "cuda-launch-config"),
                           ("memory", "cuda-out-of-memory"), ("badptx", "cuda-ptx-rejected")):
            jobs[f"faults {kind}"] = (pool.submit(run, [PROGRAMS / "faults", kind]), slug, None, None)
        jobs["faults-80"] = (pool.submit(run, [PROGRAMS / "faults-80", "noimage", 4, 0, 0]), "cuda-no-kernel-image", None, None)
        jobs["a loop that is killed, tracked"] = (pool.submit(run, [PROGRAMS / "faults", "loop"], kill_after=8, CUDIAG_TRACK="1"), "process-killed", "never_ends", 1)
        for name, (job, *what) in jobs.items():
            told(name, job.result(), *what)
        for name in ("faults oob CUDIAG_TRACK", "faults oob ", "faults-80", "faults badptx", "faults block", "faults shared", "a loop that is killed, tracked"):
            got = jobs[name][0].result()
            print(f"--- {name}\n{got[5][:2200]}", *[line for line in got[4] if '"hot"' not in line and ("cuda_" in line or "progress" in line)][-7:], sep="\n")
    fine = run([PROGRAMS / "faults", "fine"], CUDIAG_TRACK="1")
    print("healthy, tracked:", fine[0], fine[1].strip(), fine[2][-200:], "findings", len(fine[3]), "recording", bool(fine[4]))


def rank():
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        got = list(pool.map(lambda _: run([PROGRAMS / "faults", "oob"], CUDIAG_TRACK="1"), range(100)))
    ranks, counts = [], []
    for status, out, err, findings, dump, text in got:
        suspects = findings[0]["evidence"].get("suspects", []) if findings else []
        counts.append(len(suspects))
        ranks.append(next((i + 1 for i, s in enumerate(suspects) if s["kernel"].startswith("writes_out_of_bounds")), 0))
    print(f"rank of the true kernel in 100 runs: first in {ranks.count(1)}, 2 to 4 in {sum(1 < r <= 4 for r in ranks)}, not there in {ranks.count(0)};"
          f" suspects at most {max(counts)}, at least {min(counts)}", flush=True)
    if ranks.count(0) or max(counts) > 4:
        failed.append(("rank", ranks, counts))


def cores():
    """CUDIAG_COREDUMP=1: the driver's own word, whatever was pending."""
    for kind, kernel in {"oob": "writes_out_of_bounds", "assert": "asserts", "misaligned": "reads_misaligned", "trap": "traps"}.items():
        got = run([PROGRAMS / "faults", kind], CUDIAG_COREDUMP="1")
        told(f"faults {kind}, core dump", got, "cuda-async-error", kernel, 1)
        print(got[5][:1500])
    got = run([sys.executable, "-c", INDEX], CUDIAG_COREDUMP="1")
    told("torch, an index out of range, core dump", got, "cuda-async-error", "at::native::", 1)
    print(got[5][:1800], got[2][-300:], sep="\n")
    fine = run([PROGRAMS / "faults", "fine"], CUDIAG_COREDUMP="1")
    print("healthy, a core dump asked for:", fine[0], fine[1].strip(), fine[2][-200:], "recording", bool(fine[4]))


INDEX = "import torch\nx = torch.zeros(1000, device='cuda')\ny = x\nfor i in range(300): y = y * 1.01 + 1\nz = x[torch.tensor([5000], device='cuda')]\nfor i in range(300): y = y + 1\ntorch.cuda.synchronize()"


# 10,000 kernels on four streams, the fault in the middle of them.
STREAMS = """import torch
streams = [torch.cuda.Stream() for _ in range(4)]
values = [torch.ones(1000, device='cuda') for _ in streams]
wrong = torch.tensor([5000], device='cuda')
torch.cuda.synchronize()

def some(count):
    for i in range(count):
        with torch.cuda.stream(streams[i % 4]): values[i % 4].mul_(1.0001)

def look_up(x):
    return x[wrong]

some(5000)
with torch.cuda.stream(streams[1]): look_up(values[1])
some(5000)
torch.cuda.synchronize()
"""


def lines():
    """The line of Python of the launch at fault."""
    with tempfile.TemporaryDirectory() as directory:
        script = pathlib.Path(directory) / "many.py"
        script.write_text(STREAMS)
        line = STREAMS.splitlines().index("    return x[wrong]") + 1
        for mode in ("CUDIAG_TRACK", "CUDIAG_SYNC"):
            got = run([sys.executable, script], **{mode: "1"})
            rank = told(f"torch, four streams, {mode}", got, "cuda-async-error", "at::native::index_elementwise", 4 if mode == "CUDIAG_TRACK" else 1)
            suspects = got[3][0]["evidence"].get("suspects", []) if got[3] else []
            place = suspects[rank - 1].get("python", "not told") if rank else "no suspect"
            good = rank == 1 and place == f"{script}:{line} in look_up"
            print(f"{'well' if good else 'WRONG'}  the line of it: {place}", flush=True)
            if not good:
                failed.append((f"line, {mode}", place, got[5][:1500]))


def torch():
    for mode in ("", "CUDIAG_TRACK", "CUDIAG_SYNC"):
        got = run([sys.executable, "-c", INDEX], **({mode: "1"} if mode else {}))
        told(f"torch, an index out of range {mode}", got, "cuda-async-error", "at::native::index_elementwise", None if not mode else 1)
        print(got[5][:1800])
    got = run([sys.executable, "-c", "import torch\ntorch.empty(1 << 44, dtype=torch.uint8, device='cuda')"])
    told("torch, too much memory", got, "cuda-out-of-memory")
    print(got[5][:1500], *[line for line in got[4] if "cuda_call_failed" in line][:2], sep="\n")


COUNTED = """
import sys, time, torch
from torch.profiler import profile, ProfilerActivity
x = torch.randn(256, 256, device='cuda'); w = torch.nn.Linear(256, 256, device='cuda'); o = torch.optim.AdamW(w.parameters(), fused=True)
c = torch.nn.Conv2d(3, 8, 3, device='cuda'); im = torch.randn(4, 3, 32, 32, device='cuda')
f = torch.compile(lambda t: (t.sin() + t.cos()).sum(1))
s = torch.cuda.Stream()
def work():
    for _ in range(20):
        o.zero_grad(); (w(x).square().mean() + c(im).mean() + f(x).mean()).backward(); o.step()
    with torch.cuda.stream(s): y = (x @ x).half() @ x.half()
    torch.cuda.synchronize()
work(); work()
g = torch.cuda.CUDAGraph(); st = torch.zeros(100, device='cuda')
with torch.cuda.graph(g):
    for _ in range(20): st += 1
torch.cuda.synchronize()
with profile(activities=[ProfilerActivity.CUDA]) as p:
    torch.cuda.synchronize(); begin = time.time_ns(); work()
    for _ in range(10): g.replay()
    torch.cuda.synchronize(); end = time.time_ns()
kernels = sum(e.device_type == torch.autograd.DeviceType.CUDA and not e.name.startswith(('Memcpy', 'Memset')) for e in p.events())
print(begin, end, kernels)
sys.exit(3)
"""


def counts():
    status, out, err, findings, dump, text = run([sys.executable, "-c", COUNTED], CUDIAG_RING_MB="64")
    begin, end, kernels = (int(word) for word in out.split()[-3:])
    graphs = {}
    for line in dump:
        entry = json.loads(line)
        if entry["kind"] == "cuda_graph":
            fields = dict(map(tuple, entry["fields"]))
            graphs[fields["handle"]] = fields["count"]
    seen = 0
    for line in dump:
        entry = json.loads(line)
        if entry["kind"] == "hot":
            fields = {field: value for field, value in entry["fields"]}
            if begin <= fields["time_ns"] <= end and not fields["flags"] & 1:
                seen += 1 if fields["kind"] == 1 else graphs.get(fields["words"][0], 0) if fields["kind"] == 2 else 0
    print(f"launches recorded {seen}, kernels that CUPTI counted (torch.profiler) {kernels}: {'equal' if seen == kernels else 'DIFFER'}", err[-300:] if status != 3 else "")
    if seen != kernels:
        failed.append(("counts", seen, kernels))


if subprocess.run(["nvidia-smi", "-L"], capture_output=True).returncode:
    print("cannot run here: no GPU")
    sys.exit(77)
for part in sys.argv[3:] or ["faults", "cores", "rank", "lines", "torch", "counts"]:
    begin = time.monotonic()
    globals()[part]()
    print(f"[{part}: {time.monotonic() - begin:.0f} s]", flush=True)
for each in failed:
    print("FAILED", *each, sep="\n  ")
sys.exit(1 if failed else 0)
