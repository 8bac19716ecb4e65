"""A slice of the grid of scripts/doctor-truth: environments broken one way each, judged ahead, then really imported and built."""
import sys
from pathlib import Path

from cudiag_scenario import CannotRun, BIN  # noqa: F401
from worlds import torch_wheels  # noqa: F401 (some 2 GB of wheels: a slow story)
import os
import subprocess

if os.geteuid() != 0 or not Path("/usr/local/cuda-13.0/bin/nvcc").exists():
    raise CannotRun("the grid needs root, and CUDA 13.0 at /usr/local/cuda-13.0")
done = subprocess.run([sys.executable, Path(__file__).parents[3] / "truth", "--slice"])
sys.exit(done.returncode)
