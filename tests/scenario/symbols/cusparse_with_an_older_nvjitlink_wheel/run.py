"""pip kept an nvJitLink older than cuSPARSE needs, because nobody declared the bound. The search path is innocent."""
from cudiag_scenario import *

world = World("nvidia-cusparse-cu12==12.3.1.170", "nvidia-nvjitlink-cu12==12.1.105", pip_inside=True)
cusparse = world.site / "nvidia/cusparse/lib/libcusparse.so.12"
load = [world.python, "-c", f"import ctypes; ctypes.CDLL('{cusparse}')"]

run = world.under_shim(*load)
run.fails_with("undefined symbol: __nvJitLinkComplete_12_4, version libnvJitLink.so.12")

finding = run.said("loader-symbol-version", symbol="__nvJitLinkComplete_12_4", file=cusparse,
                   provider_path=ends("nvjitlink/lib/libnvJitLink.so.12"))
finding.says("nvidia-cusparse-cu12 12.3.1.170", "nvidia-nvjitlink-cu12 12.1.105", "12.1")
finding.proposes(r"pip install .*nvidia-nvjitlink-cu12", first=True)
finding.does_not_propose(r"unset LD_LIBRARY_PATH", r"LD_LIBRARY_PATH=", r"\btorch\b")

finding.apply("nvidia-nvjitlink-cu12")
world.under_shim(*load).is_silent()
