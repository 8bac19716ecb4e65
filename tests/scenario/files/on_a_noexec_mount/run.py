"""An extension was built into a cache on a file system that may not execute."""
from cudiag_scenario import *

mount = mount_point("noexec")
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

# The root of a user namespace may mount, and not change the flags of a mount.
if os.environ["CUDIAG_SCENARIO_USER"] != "0":
    sys.exit(0)
finding.apply("remount")
world.under_shim(*load).is_silent()
