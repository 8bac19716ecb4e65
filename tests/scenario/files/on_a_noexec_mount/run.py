"""An extension was built into a cache on a file system that may not execute."""
from cudiag_scenario import *

mount = Path(tempfile.gettempdir()) / f"cudiag-noexec-{os.getuid()}"
mount.mkdir(exist_ok=True)
in_mount_namespace(["mount", "-t", "tmpfs", "-o", "noexec,size=4m", "tmpfs", mount])

world = World()
library = world.library("libfused.so", "int fused() { return 0; }")
cached = mount / "libfused.so"
shutil.copy(library, cached)
load = [world.python, "-c", f"import ctypes; ctypes.CDLL('{cached}')"]

run = world.under_shim(*load)
run.fails_with("failed to map segment from shared object")
finding = run.said("loader-wrong-architecture", file=cached, problem="noexec")
finding.proposes("remount,exec", first=True)

finding.apply("remount")
world.under_shim(*load).is_silent()
