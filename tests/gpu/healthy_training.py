"""A healthy training on a real GPU, with and without the shim: same output, nothing printed, no file left.

    python3 tests/gpu/healthy_training.py BIN        BIN: the directory of libcudiag.so and cudiag

Exit status 77 without torch or a GPU. Prints one line of JSON with the times of each run, alternated.
"""
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

TRAINING = """
import torch
torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(256, 1024), torch.nn.GELU(), torch.nn.Linear(1024, 256)).cuda()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, fused=True)
x = torch.randn(512, 256, device="cuda")
for step in range(200):
    optimizer.zero_grad()
    loss = torch.nn.functional.mse_loss(model(x), x)
    loss.backward()
    optimizer.step()
print(f"loss {loss.item():.4f}, cuda {torch.version.cuda}, device {torch.cuda.get_device_name()}")
"""


def run(shim, runs):
    env = {k: v for k, v in os.environ.items() if not k.startswith("CUDIAG")}
    if shim:
        env |= {"LD_PRELOAD": str(shim), "CUDIAG_DIR": str(runs)}
    begin = time.monotonic()
    done = subprocess.run([sys.executable, "-c", TRAINING], env=env, capture_output=True, text=True, timeout=300)
    return done.returncode, done.stdout, done.stderr, time.monotonic() - begin


def main():
    shim = pathlib.Path(sys.argv[1]).resolve() / "libcudiag.so"
    probe = subprocess.run([sys.executable, "-c", "import torch, sys; sys.exit(0 if torch.cuda.is_available() else 77)"],
                           capture_output=True)
    if probe.returncode != 0:
        print("cannot run here: no torch with a GPU")
        sys.exit(77)
    with tempfile.TemporaryDirectory() as root:
        runs = pathlib.Path(root) / "runs"
        times = {"alone": [], "shim": []}
        run(None, runs)   # warms the file cache
        for _ in range(5):
            alone, under = run(None, runs), run(shim, runs)
            assert alone[:3] == under[:3], f"the shim changed the run:\n{alone}\n{under}"
            assert alone[0] == 0, alone
            assert not runs.exists() or not list(runs.rglob("*.rec")), f"files were left: {list(runs.rglob('*'))}"
            times["alone"].append(alone[3])
            times["shim"].append(under[3])
    print(alone[1], end="")
    print(json.dumps({name: [round(t, 3) for t in values] for name, values in times.items()} |
                     {"ratio of medians": round(statistics.median(times["shim"]) / statistics.median(times["alone"]), 4)}))


main()
