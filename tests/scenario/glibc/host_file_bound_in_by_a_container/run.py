"""apptainer --nv binds the host's files into an image whose glibc is older than the host's."""
from cudiag_scenario import *
from broken import needs_glibc_2_99

bound = Path("/.singularity.d/libs")
if os.geteuid() != 0 or bound.exists():
    raise CannotRun("only root can make /.singularity.d/libs, and only where there is none")
world = World()
library = needs_glibc_2_99(world, "libnvidia-ml.so.1")
bound.mkdir(parents=True)
atexit.register(shutil.rmtree, bound.parent)
shutil.copy(library, bound)
world.set["LD_LIBRARY_PATH"] = str(bound)

run = world.under_shim(world.python, "-c", "import ctypes; ctypes.CDLL('libnvidia-ml.so.1')")
run.fails_with("version `GLIBC_2.99' not found")

finding = run.said("loader-glibc-too-old", file=bound / "libnvidia-ml.so.1", wanted="GLIBC_2.99", origin=has("apptainer"))
finding.proposes("image whose glibc")
run.proposes_nothing_like("pip install")
