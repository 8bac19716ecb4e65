"""The right nvJitLink lies beside cuSPARSE, but LD_LIBRARY_PATH names an older toolkit's. Nothing must be installed."""
from cudiag_scenario import *

world = World("nvidia-cusparse-cu12==12.3.1.170", "nvidia-nvjitlink-cu12==12.4.127")
cusparse = world.site / "nvidia/cusparse/lib/libcusparse.so.12"
older = wheel("nvidia-nvjitlink-cu12==12.1.105") / "nvidia/nvjitlink/lib"
link_tree(older, world.root / "opt/cuda-12.1/lib64")
toolkit = world.root / "opt/cuda-12.1/lib64"
other = world.root / "opt/other/lib"
other.mkdir(parents=True)
world.set["LD_LIBRARY_PATH"] = f"{toolkit}:{other}"
load = [world.python, "-c", f"import ctypes; ctypes.CDLL('{cusparse}')"]

run = world.under_shim(*load)
run.fails_with("undefined symbol: __nvJitLinkComplete_12_4, version libnvJitLink.so.12")

symptom = run.said("loader-symbol-version", symbol="__nvJitLinkComplete_12_4", file=cusparse,
                   provider_path=toolkit / "libnvJitLink.so.12")
cause = run.said("loader-shadowed-library", library="libnvJitLink.so.12", used=toolkit / "libnvJitLink.so.12",
                 hidden=has("site-packages/nvidia/"), rule=has("LD_LIBRARY_PATH"))
cause.causes("loader-symbol-version")
cause.says("12.1", "nvidia-nvjitlink-cu12 12.4.127").proposes(r"LD_LIBRARY_PATH", first=True, proved=True)
run.proposes_nothing_like(r"pip install", r"\btorch\b", "nvcc")

cause.apply("LD_LIBRARY_PATH")
assert str(toolkit) not in (world.set["LD_LIBRARY_PATH"] or "")
world.under_shim(*load).is_silent()
