"""A conda-like environment holds a new libstdc++.so.6.0.NN, but its link libstdc++.so.6 is gone: the search goes past the
right file to the system's, which is older. The package is installed: installing it is no answer."""
from cudiag_scenario import *
from broken import old_libstdcxx, system_libstdcxx

in_mount_namespace()
world = World()
new = system_libstdcxx()                                      # …/libstdc++.so.6.0.NN, the file itself
prefix = world.root / "env/lib"
prefix.mkdir(parents=True)
shutil.copy(new, prefix)
extension = world.extension("torch_python", [], f"-Wl,-rpath,{prefix}", language="c++", declares="#include <filesystem>",
                            runs="std::filesystem::exists(\"/\")")
# From here on the system's is an old one.
subprocess.run(["mount", "--bind", old_libstdcxx(world, "old"), new], check=True)

run = world.under_shim(world.python, "-c", "import torch_python")
run.fails_with("not found (required by")

finding = run.said("package-broken", path=prefix / "libstdc++.so.6", file=prefix / new.name,
                   taken_instead=ends("/libstdc++.so.6"))
finding.proposes(r"ln -s", first=True, proved=True)
run.proposes_nothing_like("conda install", "pip install", "apt")

finding.apply("ln -s")
world.under_shim(world.python, "-c", "import torch_python; torch_python.run()").is_silent()
