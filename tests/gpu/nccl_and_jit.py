"""NCCL's calls, torch's watchdog and the driver's compiler on a real GPU: is each recorded, and told as what it is?

    python3 tests/gpu/nccl_and_jit.py BIN PROGRAMS [duplicate] [watchdog] [healthy] [jit]

BIN: the directory of libcudiag.so, cudiag and cudiag_dump_recording. PROGRAMS: a directory with tests/gpu/slow_to_compile.cu built as
`slow_to_compile` and `slow_to_compile-shared` (how: there). Exit status 77 without a GPU.
"""
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time

BIN, PROGRAMS = (pathlib.Path(argument).resolve() for argument in sys.argv[1:3])
ONLY = sys.argv[3:] or ["duplicate", "watchdog", "healthy", "jit"]
failed = []

RANK = """
import os, sys, torch, torch.distributed as dist
torch.cuda.set_device(0)
dist.init_process_group("nccl", rank=int(os.environ["RANK"]), world_size=int(os.environ["WORLD_SIZE"]))
dist.all_reduce(torch.ones(4, device="cuda"))
torch.cuda.synchronize()
dist.destroy_process_group()
print("reduced")
"""
# One rank: the collective waits behind a kernel that takes longer than the timeout, and torch's watchdog gives up.
WATCHDOG = """
import datetime, torch, torch.distributed as dist
torch.cuda.set_device(0)
dist.init_process_group("nccl", rank=0, world_size=1, timeout=datetime.timedelta(seconds=4))
x = torch.ones(4, device="cuda")
dist.all_reduce(x)
torch.cuda.synchronize()
torch.cuda._sleep(150_000_000_000)
dist.all_reduce(x)
torch.cuda.synchronize()
print("done")
"""


def libraries():
    done = subprocess.run([sys.executable, "-c", "import glob, os, torch; print(':'.join(glob.glob(os.path.dirname(os.path.dirname(torch.__file__)) + '/nvidia/*/lib')))"],
                          capture_output=True, text=True)
    return done.stdout.strip()


LIBRARIES = libraries()


def start(argv, directory, **more):
    env = {k: v for k, v in os.environ.items() if not k.startswith("CUDIAG")} | {"CUDIAG_DIR": directory, "LD_PRELOAD": str(BIN / "libcudiag.so"),
                                                                                  "CUDIAG_PRINT": "off", **{k: str(v) for k, v in more.items()}}
    return subprocess.Popen([str(a) for a in argv], env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def said(directory):
    """Findings and recorded entries of all runs below a directory."""
    findings, entries = [], []
    for run in sorted(p for p in pathlib.Path(directory).iterdir() if p.is_dir()):
        report = subprocess.run([BIN / "cudiag", "report", "--json", run], capture_output=True, text=True)
        findings += json.loads(report.stdout)["findings"] if report.stdout else []
        for path in sorted(run.glob("*.rec")):
            dumped = subprocess.run([BIN / "cudiag_dump_recording", path], capture_output=True, text=True, errors="replace").stdout
            entries += [json.loads(line) for line in dumped.splitlines()]
    return findings, entries


def kind(entries, name):
    return [dict(reversed([tuple(field) for field in entry["fields"]])) for entry in entries if entry["kind"] == name]


def check(name, good, what):
    print(f"{'well' if good else 'WRONG'}  {name}: {what}", flush=True)
    if not good:
        failed.append(name)


def ranks(count):
    with tempfile.TemporaryDirectory() as directory:
        began = time.time()
        there = [start([sys.executable, "-c", RANK], directory, RANK=rank, WORLD_SIZE=count, LOCAL_RANK=rank, LOCAL_WORLD_SIZE=count,
                       MASTER_ADDR="127.0.0.1", MASTER_PORT=29561) for rank in range(count)]
        ended = [process.communicate(timeout=120) for process in there]
        status = [process.returncode for process in there]
        print(f"--- {count} ranks: status {status}, {time.time() - began:.1f} s; {ended[0][1].strip().splitlines()[-1:]}")
        return status, *said(directory)


def duplicate():
    status, findings, entries = ranks(2)
    calls = kind(entries, "nccl_call")
    for call in calls:
        print("   ", {k: call.get(k) for k in ("name", "error", "text", "last_error", "rank", "ranks", "device_ordinal", "path", "caller", "duration_ns")})
    told = [f for f in findings if f["slug"] == "nccl-duplicate-gpu"]
    check("two ranks, one GPU", status != [0, 0] and told and told[0]["evidence"].get("call", "").startswith("nccl"),
          json.dumps({k: told[0]["evidence"].get(k) for k in ("result", "last_error", "call", "called_by", "device", "call_rank", "call_ranks", "processes_here")}) if told
          else [f["slug"] for f in findings])
    check("both ranks' calls are recorded", {c.get("rank") for c in calls if c["name"].startswith("ncclCommInit")} == {0, 1}, f"{len(calls)} calls")


def healthy():
    status, findings, entries = ranks(1)
    check("one rank that is well leaves nothing", status == [0] and not findings and not entries, f"{len(entries)} entries, {findings}")


def watchdog():
    with tempfile.TemporaryDirectory() as directory:
        began = time.time()
        process = start([sys.executable, "-c", WATCHDOG], directory, MASTER_ADDR="127.0.0.1", MASTER_PORT=29562, RANK=0, WORLD_SIZE=1,
                        TORCH_NCCL_DUMP_ON_TIMEOUT=0, TORCH_NCCL_ENABLE_MONITORING=0)      # it ends when the kernel does: 70 to 75 s
        try:
            out, err = process.communicate(timeout=200)
        except subprocess.TimeoutExpired:
            process.kill()
            out, err = process.communicate()
        findings, entries = said(directory)
        print(f"--- watchdog: status {process.returncode}, {time.time() - began:.1f} s")
        print("\n".join("    " + line[:240] for line in err.splitlines()[-12:]))
        for entry in kind(entries, "native_exception") + kind(entries, "nccl_call"):
            print("   ", {k: str(v)[:300] for k, v in entry.items()})
        told = [f for f in findings if f["slug"] == "nccl-hang"]
        check("torch's watchdog", bool(told), told[0]["title"] if told else [(f["slug"], f["title"]) for f in findings])


def jit():
    with tempfile.TemporaryDirectory() as cache:
        for program in ("slow_to_compile", "slow_to_compile-shared"):
            own = f"{cache}/{program}"
            for what, more, slow in (("cold", {"CUDA_CACHE_PATH": own}, True), ("warm", {"CUDA_CACHE_PATH": own}, False),
                                     ("no cache", {"CUDA_CACHE_PATH": own, "CUDA_CACHE_DISABLE": 1}, True),
                                     ("eager, no cache", {"CUDA_CACHE_DISABLE": 1, "CUDA_MODULE_LOADING": "EAGER"}, True)):
                with tempfile.TemporaryDirectory() as directory:
                    began = time.time()
                    process = start([PROGRAMS / program, "3"], directory, LD_LIBRARY_PATH=LIBRARIES, **more)
                    out, err = process.communicate(timeout=90)
                    took = time.time() - began
                    findings, entries = said(directory)
                    calls = [(e["name"], round(e["duration_ns"] / 1e9, 2), pathlib.Path(e.get("path") or "?").name, e.get("code_offset")) for e in kind(entries, "cuda_code_slow")]
                    told = [f for f in findings if f["slug"] == "cuda-ptx-jit-slow"]
                    check(f"{program}, {what}", process.returncode == 3 and bool(told) == slow,
                          f"{took:.1f} s, {out.strip()!r}; {calls}; {told[0]['title'] if told else [f['slug'] for f in findings]}; {told[0]['evidence']['cache'] if told else ''}")


if subprocess.run(["nvidia-smi", "-L"], capture_output=True).returncode != 0:
    print("cannot run here: no GPU")
    sys.exit(77)
for part in ONLY:
    try:
        globals()[part]()
    except Exception as error:                              # the other parts still tell something
        check(part, False, repr(error))
print("all well" if not failed else f"WRONG: {failed}")
sys.exit(1 if failed else 0)
