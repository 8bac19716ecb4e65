"""--fix --dry-run shows the script, --fix --yes runs it; what is for the user's own shell is left to the user."""
from cudiag_scenario import *

world = World(pip_inside=True)
world.package("torch", "")
world.write(world.site.relative_to(world.root) / "torch/version.py", "__version__ = '2.13.0+cu130'\ncuda: Optional[str] = '13.0'\n")
world.extension("_C", directory=world.site / "torch")
world.activate()
before = Diagnosis(world).answers_with(import_="red")
assert before.check("package-missing")["finding"]["evidence"]["package"] == "typing-extensions", before

shown = world.cudiag("doctor", "--python", world.python, "--fix", "--dry-run").ends_with(
    1, "# typing-extensions is not installed, and torch imports it at once", f"\n{world.python} -m pip install typing-extensions\n")
assert shown.stdout.startswith("#!/bin/sh\n") and not list(world.site.glob("typing_extensions*")), shown
subprocess.run(["sh", "-n"], input=shown.stdout, text=True, check=True)

# Only the package: what this machine lacks besides is not this story's to install.
world.paste(before.check("package-missing")["finding"]["fixes"][0]["command"])
Diagnosis(world).answers_with(import_="green")
for name in world.site.glob("typing_extensions*"):
    shutil.rmtree(name) if name.is_dir() else name.unlink()
script = next(line for line in shown.stdout.splitlines() if line.startswith(str(world.python)))
assert "typing-extensions" in script, shown
