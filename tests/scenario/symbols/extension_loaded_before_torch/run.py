"""An extension of torch is loaded before torch: its libraries are installed, in a folder that nothing leads to, and become
known to the loader by `import torch`. Nothing is missing."""
from cudiag_scenario import *

world = World(*torch_wheels())
extension = world.extension("flash_attn_2_cuda", [], world.site / "torch/lib/libc10.so", "-Wl,--no-as-needed",
                            "-L", world.site / "torch/lib", "-lc10")

run = world.under_shim(world.python, "-c", "import flash_attn_2_cuda")
run.fails_with("ImportError: libc10.so: cannot open shared object file: No such file or directory")

finding = run.said("loader-missing-library", library="libc10.so", needed_by=extension,
                   near_misses=has(f"{world.site}/torch/lib/libc10.so"))
finding.proposes("import torch", first=True)
finding.does_not_propose("pip install")

world.under_shim(world.python, "-c", "import torch, flash_attn_2_cuda").is_silent()
