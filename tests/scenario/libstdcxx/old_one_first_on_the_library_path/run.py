"""LD_LIBRARY_PATH names a folder with a libstdc++ of some old environment."""
from cudiag_scenario import *
from broken import old_libstdcxx

world = World()
old = old_libstdcxx(world, "opt/old/lib")
extension = world.extension("cpu_adam", declares="#include <filesystem>", runs="std::filesystem::exists(\"/\")", language="c++")
world.set["LD_LIBRARY_PATH"] = str(old.parent)

run = world.under_shim(world.python, "-c", "import cpu_adam")
run.fails_with("not found (required by")

finding = run.said("loader-libstdcxx-too-old", file=extension, in_use=old, in_use_best="GLIBCXX_3.4.15",
                   wanted=has("GLIBCXX_3.4."), why_in_use=has("LD_LIBRARY_PATH"))
finding.proposes("LD_LIBRARY_PATH", first=True, proved=True)
run.proposes_nothing_like("pip install", r"apt", "conda install")

finding.apply("LD_LIBRARY_PATH")
world.under_shim(world.python, "-c", "import cpu_adam; cpu_adam.run()").is_silent()
