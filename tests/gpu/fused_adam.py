"""DeepSpeed's FusedAdam on a real GPU, compiled when it is first used: examples/finetune.py with and without the shim.

    python3 tests/gpu/fused_adam.py BIN [PAIRS]        BIN: the directory of libcudiag.so and cudiag; PAIRS of good builds, 2

A good build and training print the same and leave no file; faults of the environment are explained and mended. Exit status 77
without a GPU, torch, DeepSpeed or nvcc. Prints one line for each run with its seconds.
"""
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
FINETUNE = [sys.executable, str(ROOT / "examples/finetune.py"), "--fused-adam", "--steps", "40"]


def run(what, bin_directory, root, shim, **variables):
    runs = root / "runs"
    env = {k: v for k, v in os.environ.items() if not k.startswith("CUDIAG")}
    env |= {"TORCH_EXTENSIONS_DIR": str(root / "extensions"), "TORCH_CUDA_ARCH_LIST": "9.0", "CUDIAG_DIR": str(runs)} | variables
    if shim:
        env["LD_PRELOAD"] = str(bin_directory / "libcudiag.so")
    begin = time.monotonic()
    done = subprocess.run(FINETUNE, env=env, capture_output=True, text=True, timeout=500)
    print(f"{what:<44} {'under the shim' if shim else 'alone':<15} status {done.returncode}, {time.monotonic() - begin:6.1f} s", flush=True)
    return done, sorted(str(f.relative_to(runs)) for f in runs.rglob("*") if f.is_file())


def same(text):
    """Without times, and without what ninja says of its progress."""
    text = re.sub(r"^\[\d{4}-\d\d-\d\d [\d:,]+\]", "[TIME]", text, flags=re.MULTILINE)
    text = re.sub(r"\b0x[0-9a-f]+|\d+\.\d+ seconds|^[IWE]\d{4} [\d:.]+ \d+", "X", text, flags=re.MULTILINE)
    return text


def slugs(bin_directory, root):
    newest = max((root / "runs").iterdir(), key=lambda d: d.stat().st_mtime)
    report = subprocess.run([bin_directory / "cudiag", "report", "--json", newest], capture_output=True, text=True)      # status 1: there are findings
    return {finding["slug"]: finding for finding in json.loads(report.stdout)["findings"]}


def main():
    bin_directory = pathlib.Path(sys.argv[1]).resolve()
    probe = "import torch, deepspeed, sys; from torch.utils.cpp_extension import CUDA_HOME; sys.exit(0 if torch.cuda.is_available() and CUDA_HOME else 77)"
    probed = subprocess.run([sys.executable, "-c", probe], capture_output=True, text=True)
    if probed.returncode != 0:
        print(f"cannot run here: no GPU, torch, DeepSpeed or nvcc: {probed.stderr[-300:]}")
        sys.exit(77)
    for number in range(int(sys.argv[2]) if len(sys.argv) > 2 else 2):
        outputs = []
        for shim in ((False, True), (True, False))[number % 2]:
            with tempfile.TemporaryDirectory() as directory:
                root = pathlib.Path(directory)
                done, files = run("built and trained", bin_directory, root, shim)
                assert done.returncode == 0 and "FusedAdam" in done.stdout, done.stderr[-3000:]
                assert not files, files
                cached, files = run("trained with what was built", bin_directory, root, shim)
                assert cached.returncode == 0 and not files, (cached.stderr[-2000:], files)
                outputs.append([same(text.replace(directory, "ROOT")) for text in (done.stdout, done.stderr, cached.stdout, cached.stderr)])
        assert outputs[0] == outputs[1], outputs
        print(done.stdout.strip().splitlines()[-1])

    with tempfile.TemporaryDirectory() as directory:
        root = pathlib.Path(directory)
        done, _ = run("CUDA_HOME leads nowhere", bin_directory, root, True, CUDA_HOME="/opt/cuda-12.4")
        finding = slugs(bin_directory, root)["build-missing-compiler"]
        assert done.returncode != 0 and finding["title"] in re.sub(r"\s+", " ", done.stderr), done.stderr[-3000:]
        print("  " + finding["title"] + "\n  $ " + finding["fixes"][0]["command"])
        home = finding["fixes"][0]["command"].split("=", 1)[1]
        done, _ = run("mended as proposed", bin_directory, root, True, CUDA_HOME=home)
        assert done.returncode == 0, done.stderr[-3000:]
    with tempfile.TemporaryDirectory() as directory:
        root = pathlib.Path(directory)
        done, _ = run("an architecture that nvcc dropped", bin_directory, root, True, TORCH_CUDA_ARCH_LIST="7.0")
        finding = slugs(bin_directory, root)["build-unsupported-arch"]
        print("  " + finding["title"] + "\n  $ " + finding["fixes"][0]["command"])
        shell = subprocess.run(["sh", "-c", finding["fixes"][0]["command"] + ' && printf %s "$TORCH_CUDA_ARCH_LIST"'], capture_output=True, text=True)
        done, _ = run(f"mended as proposed ({shell.stdout})", bin_directory, root, True, TORCH_CUDA_ARCH_LIST=shell.stdout)
        assert done.returncode == 0, done.stderr[-3000:]


main()
