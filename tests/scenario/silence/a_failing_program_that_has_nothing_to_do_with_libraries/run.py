"""Programs end with other statuses than 0 for a thousand reasons. None of these is ours."""
from cudiag_scenario import *

world = World()
world.under_shim(world.python, "-c", "raise SystemExit(3)").is_silent(status=3)
world.under_shim(world.python, "-c", "raise ValueError('no such tokenizer')").is_silent(status=1)
world.under_shim(world.python, "-c", "import torch_is_not_installed").is_silent(status=1)
world.under_shim("sh", "-c", "exit 5").is_silent(status=5)
world.under_shim("grep", "-q", "x", "/dev/null").is_silent(status=1)
world.under_shim("ls", "/nowhere").is_silent(status=2)
