"""`cannot find -lcurand` was cured by a forum's link: libcurand.so, which leads to libcudart. It links, and curand is nowhere."""
from cudiag_scenario import *

hide_toolkit()
world = World("nvidia-cuda-runtime==13.0.96")
lib = world.site / "nvidia/cu13/lib"
(lib / "libcurand.so").symlink_to("libcudart.so.13")
library = world.library("noise.so", """int curandCreateGenerator(void**, int);
int noise(void) { void* g; return curandCreateGenerator(&g, 100); }
""", f"-L{lib}", "-Wl,--no-as-needed", "-lcurand", f"-Wl,-rpath,{lib}")
script = world.write("finetune.py", f"import ctypes, os\nprint(ctypes.CDLL({str(library)!r}, os.RTLD_NOW).noise())\n")

run = world.under_shim(world.python, script)
run.fails_with("undefined symbol: curandCreateGenerator", status=1)

finding = run.said("loader-symbol-version", symbol="curandCreateGenerator", file=library, misnamed=has(f"{lib}/libcurand.so"))
finding.says("libcurand.so", "libcudart.so.13")
run.proposes_nothing_like("ln -s")
