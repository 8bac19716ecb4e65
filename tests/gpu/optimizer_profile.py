"""Profiles of optimizers on a real GPU: are they complete, do they agree with torch.profiler, do both live side by side, and what do they cost?

    python3 tests/gpu/optimizer_profile.py BIN [PART...]        BIN: the directory of cudiag, libcudiag.so and libcudiag-cupti.so

Parts (all by default): variants, predict, sessions, graphs, cost, story, jit, cpu, eight_bit. OUT, a directory in the environment: recordings are kept there.
RUNS: how often `cost` runs each of its four ways (3, which takes five minutes); it needs a C compiler.
Exit status 77 without a GPU and torch, 1 if something is not as it should be.
"""
import gzip
import json
import os
import pathlib
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

BIN = pathlib.Path(sys.argv[1]).resolve()
PARTS = sys.argv[2:] or ["variants", "predict", "sessions", "graphs", "story", "jit", "cpu", "eight_bit", "cost"]
OUT = os.environ.get("OUT")
wrong = []

# Steps of an optimizer on gradients that stay, over N times tensors of these sizes; torch.profiler watches the steps from A to B, in S sessions.
STEPS = """
import json, os, sys, time, torch
kind, times, sizes, steps, watched = sys.argv[1], int(sys.argv[2]), [int(size) for size in sys.argv[3].split(",")], int(sys.argv[4]), json.loads(sys.argv[5])
torch.manual_seed(0)
p = [torch.nn.Parameter(torch.randn(size, device="cuda")) for _ in range(times) for size in sizes]
for each in p: each.grad = torch.randn_like(each)
if kind == "deepspeed":
    from deepspeed.ops.adam import FusedAdam
    o = FusedAdam(p, lr=1e-3)
elif kind == "8-bit":
    import bitsandbytes
    o = bitsandbytes.optim.AdamW8bit(p, lr=1e-3)
elif kind == "sgd":
    o = torch.optim.SGD(p, lr=1e-3, momentum=0.9, fused=True)
else:
    flags = {"fused": {"fused": True}, "foreach": {"foreach": True}, "for-loop": {"foreach": False}, "default": {}, "bf16": {"fused": True}}[kind]
    if kind == "bf16":
        p = [torch.nn.Parameter(each.detach().bfloat16()) for each in p]
        for each in p: each.grad = torch.randn_like(each)
    o = torch.optim.AdamW(p, lr=1e-3, **flags)
from torch.profiler import profile, ProfilerActivity
seen = []
def run(count):
    for _ in range(count):
        o.step()
    torch.cuda.synchronize()
done = 0
for begin, end in watched:
    run(begin - done)
    with profile(activities=[ProfilerActivity.CUDA]) as prof:
        run(end - begin)
    kernels = [e for e in prof.events() if e.device_type == torch.autograd.DeviceType.CUDA and not e.name.startswith(("Memcpy", "Memset"))]
    seen.append({"begin": begin, "end": end, "kernels": len(kernels), "ns": sum(e.time_range.elapsed_us() for e in kernels) * 1000})
    done = end
run(steps - done)
print(json.dumps(seen))
"""

# A training step, bound by the GPU or by the host; prints how long its steps took. With CUPTI_ALONE, the library of cupti_buffers.c, CUPTI records the
# first 12 steps as a profile has it do (cupti_activity.h: CONCURRENT_KERNEL, MEMCPY, MEMSET), into buffers that nobody reads, and leaves.
TRAINING = """
import ctypes, json, os, pathlib, sys, time, torch
class Cupti:
    def __init__(self, buffers):
        self.cupti = ctypes.CDLL(str(next((pathlib.Path(torch.__file__).parent.parent / "nvidia").glob("*/lib/libcupti.so*"))))
        self.buffers = ctypes.CDLL(buffers)
        self.ask("cuptiActivityRegisterCallbacks", self.buffers.request, self.buffers.complete)
        for kind in (10, 1, 2): self.ask("cuptiActivityEnable", kind)
    def ask(self, name, *arguments):
        assert getattr(self.cupti, name)(*arguments) == 0, name
    def leave(self):
        for kind in (10, 1, 2): self.ask("cuptiActivityDisable", kind)
        self.ask("cuptiActivityFlushAll", 1)
        self.ask("cuptiFinalize")
        assert self.buffers.recorded_bytes() > 0
cupti = Cupti(os.environ["CUPTI_ALONE"]) if "CUPTI_ALONE" in os.environ else None
width, depth, batch, steps = (int(a) for a in sys.argv[1:5])
flags = json.loads(sys.argv[5])
torch.manual_seed(0)
model = torch.nn.Sequential(*[m for _ in range(depth) for m in (torch.nn.Linear(width, width), torch.nn.GELU())]).cuda()
o = torch.optim.AdamW(model.parameters(), lr=1e-4, **flags)
data = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(torch.randn(batch * max(4, min(64, (1 << 24) // (batch * width))), width)), batch_size=batch, num_workers=1, pin_memory=True, persistent_workers=True)
times = []
step = 0
while step < steps:
    for (x,) in data:
        begin = time.perf_counter()
        x = x.cuda(non_blocking=True)
        o.zero_grad()
        with torch.autocast("cuda", torch.bfloat16):
            loss = model(x).square().mean()
        loss.backward()
        o.step()
        torch.cuda.synchronize()
        step += 1
        if cupti and step == 12:
            cupti.leave()
        times.append((time.perf_counter() - begin) * 1e3)
print(json.dumps({"loss": loss.item(), "ms": times}))
"""

GRAPHS = """
import torch
p = [torch.nn.Parameter(torch.randn(1 << 16, device="cuda")) for _ in range(20)]
for each in p: each.grad = torch.randn_like(each)
o = torch.optim.AdamW(p, lr=1e-3, fused=True, capturable=True)
for _ in range(3): o.step()
torch.cuda.synchronize()
g = torch.cuda.CUDAGraph()
with torch.cuda.graph(g):
    o.step()
for _ in range(30): g.replay()
torch.cuda.synchronize()
q = torch.optim.AdamW(p, lr=1e-3)
for _ in range(120): q.step(); g.replay()
torch.cuda.synchronize()
h = torch.cuda.CUDAGraph()           # captured behind the window
with torch.cuda.graph(h):
    q2 = p[0] * 2
for _ in range(30): h.replay(); g.replay()
torch.cuda.synchronize()
s = torch.compile(lambda: o.step())
for _ in range(4): s()
torch.cuda.synchronize()
print("done", float(p[0].sum()) == float(p[0].sum()))
"""


# An optimizer whose parameters lie in the host's memory, as offloading has it: gradients come down, parameters go up.
OFFLOADED = """
import sys, torch
from deepspeed.ops.adam import DeepSpeedCPUAdam
p = [torch.nn.Parameter(torch.randn(1 << 22).pin_memory()) for _ in range(16)]
for each in p: each.grad = torch.zeros_like(each).pin_memory()
there = [each.detach().cuda() for each in p]
o = DeepSpeedCPUAdam(p, lr=1e-3)
for step in range(40):
    for here, up in zip(p, there):
        here.grad.copy_(up * 0.5, non_blocking=True)
    torch.cuda.synchronize()
    o.step()
    for here, up in zip(p, there):
        up.copy_(here.detach(), non_blocking=True)
torch.cuda.synchronize()
"""


def run(text, *arguments, profile="optimizer", keep="", **more):
    with tempfile.TemporaryDirectory() as directory:
        env = {k: v for k, v in os.environ.items() if not k.startswith("CUDIAG")} | {"CUDIAG_DIR": directory, **more}
        if profile:
            env |= {"LD_PRELOAD": str(BIN / "libcudiag.so"), "CUDIAG_PROFILE": profile}
        done = subprocess.run([sys.executable, "-c", text, *(str(a) for a in arguments)], env=env, capture_output=True, text=True, timeout=300)
        runs = [d for d in pathlib.Path(directory).iterdir() if d.is_dir()] if profile else []
        report = {}
        if runs:
            report = json.loads(subprocess.run([BIN / "cudiag", "report", "--json", runs[0]], env={**env, "LD_PRELOAD": ""}, capture_output=True, text=True).stdout or "{}")
            for number, file in enumerate(sorted(runs[0].glob("*.prof"))):
                if keep and OUT and number == 0:
                    with open(file, "rb") as source, gzip.open(f"{OUT}/{keep}.prof.gz", "wb") as target:
                        shutil.copyfileobj(source, target)
        return done, report


def expect(what, good, *said):
    print(f"{'well ' if good else 'WRONG'} {what}", *said, flush=True)
    if not good:
        wrong.append(what)


def one_profile(what, done, report):
    profiles = report.get("profiles", [])
    expect(f"{what}: ran, with a profile", done.returncode == 0 and len(profiles) == 1, done.stderr[-1500:] if done.returncode or not profiles else "")
    return profiles[0] if profiles else None


def complete(what, profile):
    records = profile["records"]
    expect(f"{what}: launches = records, none lost", records["launches"] == records["recorded"] and records["lost_by_cupti"] == 0 and records["matched_by_launch"]
           and records["of_another_clock"] == 0, json.dumps(records))


def agrees(what, profile, seen):
    """Device time and count of the steps that torch.profiler watched."""
    steps = {step["number"]: step for step in profile["steps"]}
    for session in seen:
        ours = [steps[n] for n in range(session["begin"], session["end"]) if n in steps]
        busy, kernels = sum(s.get("busy_ns", 0) for s in ours), sum(s.get("kernels", 0) for s in ours)
        expect(f"{what}: steps {session['begin']} to {session['end']} as torch.profiler has them",
               kernels == session["kernels"] and session["ns"] > 0 and abs(busy / session["ns"] - 1) < 0.01,
               f"kernels {kernels} / {session['kernels']}, device time {busy / 1e6:.3f} / {session['ns'] / 1e6:.3f} ms ({(busy / max(session['ns'], 1) - 1) * 100:+.2f} %)")


def variants():
    expected = {"fused": "fused", "foreach": "foreach", "for-loop": "for-loop", "default": "foreach", "sgd": "fused", "bf16": "fused"}
    for kind, implementation in expected.items():
        done, report = run(STEPS, kind, 30, 1 << 20, 60, "[[5, 15]]", keep=kind)
        profile = one_profile(kind, done, report)
        if profile is None:
            continue
        complete(kind, profile)
        agrees(kind, profile, json.loads(done.stdout))
        optimizer = profile["optimizers"][0]
        expect(f"{kind}: told as {implementation}", optimizer["implementation"] == implementation, json.dumps({k: v for k, v in optimizer.items() if k not in ("kernels",)}))
        expect(f"{kind}: its parameters", optimizer["parameters"][0]["tensors"] == 30 and optimizer["parameters"][0]["elements"] == 30 << 20)
        print("   slugs", [(f["slug"], f["title"]) for f in report["findings"]])
        if kind in ("foreach", "fused"):
            print(done.stderr)
    done, report = run(STEPS, "fused", 100, 10_000_000, 60, "[]", keep="")
    profile = one_profile("1e9 elements in 100 tensors, fused", done, report)
    if profile:
        complete("1e9 elements", profile)
        print("   ", json.dumps(profile["optimizers"][0] | {"kernels": []}), json.dumps(profile["devices"]), json.dumps(profile["own_cost"]))


def predict():
    """What a run with foreach says that fused=True would take, on a card that was measured, and what it then takes."""
    with tempfile.TemporaryDirectory() as state:
        measured = subprocess.run([BIN / "cudiag", "bench", "adam"], env={**os.environ, "XDG_STATE_HOME": state}, capture_output=True, text=True)
        print(measured.stdout, measured.stderr)
        # The last two: the layers of a GPT of 0.3e9 parameters; tensors that torch's kernel cannot take four elements at a time.
        layer = [1024, 1024, 3072 * 1024, 3072, 1024 * 1024, 1024, 1024, 1024, 4096 * 1024, 4096, 1024 * 4096, 1024]
        for tensors, sizes in ((100, [10_000_000]), (310, [3_225_808]), (1000, [100_000]), (60, [1 << 20]), (24, layer), (310, [3_225_806])):
            what = f"predict: {tensors} times {sizes if len(sizes) == 1 else 'a layer'}"
            elements = ",".join(str(size) for size in sizes)
            told, found = ({}, {})
            for kind in ("foreach", "fused"):
                done, report = run(STEPS, kind, tensors, elements, 40, "[]", XDG_STATE_HOME=state)
                profile = one_profile(f"{what}, {kind}", done, report)
                if profile is None:
                    return
                told, found = (profile["optimizers"][0], [f for f in report["findings"] if f["slug"] == "optimizer-not-fused"]) if kind == "foreach" else (told, found)
                print("   ", kind, json.dumps({k: profile["optimizers"][0][k] for k in ("device_ms", "host_ms", "fused_ms_here", "fused_error", "limit_ms_here", "gb_per_s")}))
            # Where the GPU waits for the host between launches, the kernels alone are what is predicted.
            last = profile["optimizers"][0]
            took = last["busy_ms" if last["host_ms"]["median"] > last["device_ms"]["median"] else "device_ms"]["median"]
            uneven = any(size % 4 for size in sizes)
            if uneven or told["fused_ms_here"] is None:
                expect(f"{what}: silent of these", uneven and told["fused_ms_here"] is None, took)
                continue
            error = told["fused_ms_here"] / took - 1
            expect(f"{what}: within 5 %", abs(error) < 0.05, f"{told['fused_ms_here']:.3f} predicted, {took:.3f} ms taken ({error * 100:+.1f} %)", [f["title"] for f in found])


def eight_bit():
    """bitsandbytes' 8-bit AdamW, if it is there."""
    if subprocess.run([sys.executable, "-c", "import bitsandbytes"], capture_output=True).returncode != 0:
        print("no bitsandbytes: not run")
        return
    done, report = run(STEPS, "8-bit", 30, 1 << 20, 60, "[[5, 15]]", keep="8-bit")
    profile = one_profile("8-bit", done, report)
    if profile:
        complete("8-bit", profile)
        agrees("8-bit", profile, json.loads(done.stdout.strip().splitlines()[-1]))
        expect("8-bit: told", profile["optimizers"][0]["implementation"] == "8-bit", json.dumps(profile["optimizers"][0]))
        print(done.stderr[-3000:])


def sessions():
    """torch.profiler first and later, several sessions, its own end of CUPTI."""
    for what, more, watched in (("profiler in the first step", {}, "[[0, 5]]"), ("three sessions", {}, "[[2, 5], [7, 11], [14, 18]]"),
                                ("three sessions with TEARDOWN_CUPTI", {"TEARDOWN_CUPTI": "1"}, "[[2, 5], [7, 11], [14, 18]]"),
                                ("sessions in and behind the window", {}, "[[8, 18], [70, 80], [90, 100]]"), ("over the end of the window", {}, "[[10, 40], [90, 95]]")):
        alone = json.loads(run(STEPS, "foreach", 20, 4096, 120, watched, profile="", **more)[0].stdout or "[]")
        done, report = run(STEPS, "foreach", 20, 4096, 120, watched, **more)
        profile = one_profile(what, done, report)
        seen = json.loads(done.stdout or "[]")
        expect(f"{what}: torch.profiler has as much as alone", [s["kernels"] for s in seen] == [s["kernels"] for s in alone] and len(seen) > 0,
               [s["kernels"] for s in seen], [s["kernels"] for s in alone])
        if profile:
            complete(what, profile)
            agrees(what, profile, [s for s in seen if s["end"] <= 49])
            print("   shared", profile["records"]["shared"], "steps", profile["optimizers"][0]["steps"], "slugs", [f["slug"] for f in report["findings"]])


def graphs():
    done, report = run(GRAPHS)
    profile = one_profile("graphs", done, report)
    if profile:
        print("  ", json.dumps(profile["records"]), json.dumps(profile["own_cost"]))
        expect("graphs: ran on behind the window", "done True" in done.stdout, done.stderr[-500:])


def usual_step(ms):
    """Of the steps of TRAINING behind those that are recorded."""
    return statistics.median(ms[30:])


def cost():
    """A step alone, under the shim, recorded by CUPTI without us, and profiled, in runs that alternate. Runs differ by more than a percent: the steps that
    are recorded are compared with the later ones of the same run."""
    recorded, runs = 12, int(os.environ.get("RUNS", "3"))
    with tempfile.TemporaryDirectory() as directory:
        buffers = f"{directory}/buffers.so"
        subprocess.run(["cc", "-shared", "-fPIC", "-O2", "-o", buffers, pathlib.Path(__file__).with_name("cupti_buffers.c")], check=True)
        ways = {"alone": {"profile": ""}, "the shim": {"profile": "", "LD_PRELOAD": str(BIN / "libcudiag.so")},
                "CUPTI alone": {"profile": "", "CUPTI_ALONE": buffers}, "profiled": {}}
        for what, steps, words in (("the GPU decides", 200, (4096, 24, 4096)), ("the host decides", 600, (256, 40, 64))):
            took = {way: [] for way in ways}
            for number in range(runs):
                for way in sorted(ways, reverse=number % 2 == 1):
                    done, report = run(TRAINING, *words, steps, '{"fused": true}', **ways[way])
                    if done.returncode:
                        expect(f"cost, {what}: ran {way}", False, done.stderr[-1500:])
                        return
                    took[way].append(json.loads(done.stdout)["ms"])
                    if way == "profiled":
                        last = report
            later = {way: [usual_step(ms) for ms in each] for way, each in took.items()}
            ratio = {way: statistics.median(statistics.median(ms[3:recorded - 1]) / usual for ms, usual in zip(each, later[way])) for way, each in took.items()}
            # All that a run has lost by its first steps: loading, switching on, recording, switching off, writing.
            once = {way: statistics.median(sum(ms[:recorded + 2]) - (recorded + 2) * usual for ms, usual in zip(each, later[way])) for way, each in took.items()}
            usual = statistics.median(later["alone"])
            print(f"cost, {what}: a step of {usual:.2f} ms; {runs} runs each way of {steps} steps")
            for way in ways:
                print(f"   {way}: steps 4 to {recorded - 1} {100 * (ratio[way] - 1):+.2f} % of the later ones; the run {once[way] - once['alone']:+.0f} ms, "
                      f"{100 * (once[way] - once['alone']) / (steps * usual):+.2f} %; later steps {100 * (statistics.median(later[way]) / usual - 1):+.2f} %, "
                      f"{[round(each, 2) for each in later[way]]} ms")
            print("   told:", json.dumps(last["profiles"][0]["own_cost"]), json.dumps(last["profiles"][0]["records"]), [f["title"] for f in last["findings"]])
            expect(f"cost, {what}: of a recorded step at most 1 % more than CUPTI's own", ratio["profiled"] / ratio["CUPTI alone"] < 1.01,
                   f"{100 * (ratio['profiled'] / ratio['CUPTI alone'] - 1):+.2f} %")


def story():
    """Run, read, change the line, run again."""
    done, report = run(TRAINING, 4096, 12, 256, 120, '{"foreach": true}', keep="story")
    print(done.stderr)
    again, after = run(TRAINING, 4096, 12, 256, 120, '{"fused": true}')
    print(again.stderr)
    before, now = (r["profiles"][0]["optimizers"][0]["device_ms"]["median"] for r in (report, after))
    expect("story: fused is faster", now < before, f"{before} -> {now} ms; the training step {usual_step(json.loads(done.stdout)['ms']):.2f} -> {usual_step(json.loads(again.stdout)['ms']):.2f} ms")


def jit():
    """DeepSpeed's FusedAdam, compiled when it is first used, if DeepSpeed is there."""
    if subprocess.run([sys.executable, "-c", "import deepspeed"], capture_output=True).returncode != 0:
        print("no deepspeed: not run")
        return
    with tempfile.TemporaryDirectory() as extensions:
        done, report = run(STEPS, "deepspeed", 30, 1 << 20, 60, "[[5, 15]]", keep="deepspeed", TORCH_EXTENSIONS_DIR=extensions, TORCH_CUDA_ARCH_LIST="9.0")
        profile = one_profile("deepspeed", done, report)
        if profile:
            complete("deepspeed", profile)
            agrees("deepspeed", profile, json.loads(done.stdout.strip().splitlines()[-1]))
            expect("deepspeed: told", profile["optimizers"][0]["implementation"] == "deepspeed", json.dumps(profile["optimizers"][0]))
            print(done.stderr[-3000:])


def cpu():
    """DeepSpeed's CPUAdam over offloaded parameters: with all threads, and with one."""
    if subprocess.run([sys.executable, "-c", "import deepspeed"], capture_output=True).returncode != 0:
        print("no deepspeed: not run")
        return
    with tempfile.TemporaryDirectory() as extensions:
        for threads in ({}, {"OMP_NUM_THREADS": "1"}):
            what = f"cpu, {threads or 'all threads'}"
            done, report = run(OFFLOADED, TORCH_EXTENSIONS_DIR=extensions, **threads)
            profile = one_profile(what, done, report)
            if profile is None:
                return
            complete(what, profile)
            told = profile["optimizers"][0]
            findings = {f["slug"]: f for f in report["findings"]}
            expect(f"{what}: told", told["implementation"] == "cpu" and "optimizer-cpu-bound" in findings, json.dumps(told)[:600])
            if "optimizer-cpu-bound" in findings:
                finding = findings["optimizer-cpu-bound"]
                expect(f"{what}: threads", (finding["evidence"]["threads"] == 1 and finding["fixes"]) if threads else (finding["evidence"]["threads"] == "unknown" and not finding["fixes"]), finding["title"], json.dumps(finding["evidence"]),
                       [fix["command"] or fix["text"] for fix in finding["fixes"]])


if subprocess.run([sys.executable, "-c", "import torch, sys; sys.exit(0 if torch.cuda.is_available() else 77)"], capture_output=True).returncode != 0:
    print("cannot run here: no torch with a GPU")
    sys.exit(77)
for part in PARTS:
    began = time.monotonic()
    try:
        globals()[part]()
    except Exception as why:        # one part's failure must not cost the others the machine
        expect(f"{part} ran through", False, f"{type(why).__name__}: {why}")
    print(f"--- {part}: {time.monotonic() - began:.0f} s", flush=True)
print("all is well" if not wrong else f"WRONG: {wrong}")
sys.exit(1 if wrong else 0)
