"""A slice of the grid of scripts/doctor-truth: environments broken one way each, judged ahead, then really imported and built."""
from cudiag_scenario import *

# The worlds are those of torch_wheels(), made by tests/truth itself.
if os.geteuid() != 0 or not Path("/usr/local/cuda-13.0/bin/nvcc").exists():
    raise CannotRun("the grid needs root, and CUDA 13.0 at /usr/local/cuda-13.0")
sys.exit(subprocess.run([sys.executable, Path(__file__).parents[3] / "truth", "--slice"]).returncode)
