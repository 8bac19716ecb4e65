"""Directories with names that no one would give: each failure is told as it is, and nothing falls over."""
from cudiag_scenario import *

hide_toolkit(compiler=True)
world = World(*NVCC)
home = cuda_home(world)
deep = "/".join(["d" * 200] * 17)
for name in ("two words", "a line\nand another", "größe-試験", "quotes'\"$(touch x)", "tab\tand\x1bescape", deep):
    fused = kernel(world, "cusparse.h", name=f"{name}/fused.cu")
    assert len(str(fused)) < 3900
    run = world.under_shim(f"{home}/bin/nvcc", "-arch=sm_90", "-c", "fused.cu", "-o", world.root / "fused.o", cwd=fused.parent)
    assert run.status != 0 and "cusparse.h: No such file or directory" in run.stderr, run
    if WORLDS_ONLY:
        continue
    finding = run.said("build-missing-header", header="cusparse.h", included_by=ends("fused.cu:1"))
    assert "\x1b" not in run.spoken(), run
