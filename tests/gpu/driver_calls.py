"""Programs of many kinds on a real GPU with the driver's functions stood before: the same output, no file left; and their errors recorded.

    python3 tests/gpu/driver_calls.py BIN        BIN: the directory of libcudiag.so and cudiag, in a build with the tests

Torch eager, CUDA graphs, torch.compile, cuBLAS, cuDNN and CuPy, JAX where installed. Exit status 77 without torch or a GPU.
"""
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time

GOOD = {
    "torch": "import torch\nx = torch.arange(1000., device='cuda')\nfor _ in range(1000): x = x * 1.0001 + 1\nprint(float(x.sum()))",
    "matmul and convolution": "import torch\ntorch.manual_seed(0)\nx = torch.randn(8, 16, 64, 64, device='cuda')\n"
                              "print(float(torch.nn.functional.conv2d(x, torch.randn(32, 16, 3, 3, device='cuda')).sum() * 0), (x.flatten(1) @ x.flatten(1).T).shape)",
    "graph": "import torch\nx = torch.zeros(10, device='cuda')\ns = torch.cuda.Stream()\nwith torch.cuda.stream(s): x + 1\ntorch.cuda.synchronize()\n"
             "g = torch.cuda.CUDAGraph()\nwith torch.cuda.graph(g): x += 1\nfor _ in range(20): g.replay()\ntorch.cuda.synchronize()\nprint(x.tolist())",
    "compile": "import torch\nf = torch.compile(lambda x: (x.sin() + x.cos()).sum())\nprint(round(float(f(torch.ones(1000, device='cuda'))), 2))",
    "cupy": "import cupy\nx = cupy.arange(1000.)\nk = cupy.RawKernel('extern \"C\" __global__ void f(double* x) { x[threadIdx.x] += 1; }', 'f')\n"
            "k((1,), (1000,), (x,))\nprint(float(x.sum()), float((x.reshape(10, 100) @ x.reshape(100, 10)).sum()))",
    "jax": "import jax, jax.numpy as n\nprint(float(jax.jit(lambda x: (x @ x.T).sum())(n.ones((64, 64)))))",
}
BAD = {
    "an index out of range": ("import torch\nx = torch.zeros(4, device='cuda')\nx[torch.tensor([9], device='cuda')]\ntorch.cuda.synchronize()", 710),
    "memory that there is not": ("import torch\ntorch.empty(1 << 44, dtype=torch.uint8, device='cuda')", 2),
    "a kernel that writes out of bounds": ("import cupy\nx = cupy.zeros(1)\nk = cupy.RawKernel('extern \"C\" __global__ void f(double* x) { x[1ull << 40] = 1; }', 'f')\n"
                                           "k((1,), (1,), (x,))\ncupy.cuda.Device().synchronize()", 700),
}


def run(code, shim, runs):
    env = {k: v for k, v in os.environ.items() if not k.startswith("CUDIAG")} | {"CUDIAG_DIR": str(runs)}
    if shim:
        env["LD_PRELOAD"] = str(shim)
    begin = time.monotonic()
    done = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True, timeout=300)
    return done, time.monotonic() - begin


def main():
    bin_directory = pathlib.Path(sys.argv[1]).resolve()
    shim = bin_directory / "libcudiag.so"
    if subprocess.run([sys.executable, "-c", "import torch, sys; sys.exit(0 if torch.cuda.is_available() else 77)"], capture_output=True).returncode:
        print("cannot run here: no torch with a GPU")
        sys.exit(77)
    failed = []
    for name, code in GOOD.items():
        with tempfile.TemporaryDirectory() as directory:
            runs = pathlib.Path(directory) / "runs"
            alone, alone_s = run(code, None, runs)
            under, under_s = run(code, shim, runs)
            files = [str(f) for f in runs.rglob("*") if f.is_file()]
            same = (alone.returncode, alone.stdout) == (under.returncode, under.stdout) and alone.returncode == 0 and not files and "cudiag" not in under.stderr
            print(f"{name:<36} {'equal' if same else 'DIFFERS'}  {alone_s:.1f} s alone, {under_s:.1f} s under the shim", flush=True)
            if not same:
                failed.append((name, alone.stderr[-800:], under.stdout, under.stderr[-1500:], files))
    for name, (code, error) in BAD.items():
        with tempfile.TemporaryDirectory() as directory:
            runs = pathlib.Path(directory) / "runs"
            under, _ = run(code, shim, runs)
            alone, _ = run(code, None, runs)
            records = list(runs.rglob("*.rec"))
            report = subprocess.run([bin_directory / "cudiag", "report", "--json", records[0].parent], capture_output=True, text=True) if records else None
            told = [f["slug"] for f in json.loads(report.stdout)["findings"]] if report else []
            noted = subprocess.run([bin_directory.parent / "tests/shim/cudiag_dump_recording", records[0]], capture_output=True, text=True).stdout if records else ""
            noted = f'["error",{error}]' in noted
            print(f"{name:<36} status {alone.returncode} alone, {under.returncode} under the shim; recordings {len(records)}; findings {told}", flush=True)
            if alone.returncode != under.returncode or not noted or any(slug.startswith("loader-") for slug in told):
                failed.append((name, under.stderr[-1500:]))
    for each in failed:
        print(each)
    sys.exit(1 if failed else 0)


main()
