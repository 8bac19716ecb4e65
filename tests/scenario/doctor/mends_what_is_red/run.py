"""--fix --dry-run shows the script, --fix --yes runs it; what is for the user's own shell is left to the user."""
import tempfile

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

# Piped to, there is nobody to ask; --yes is the answer, and the script is run to its end.
world.cudiag("doctor", "--python", world.python, "--fix", stdin=subprocess.DEVNULL).ends_with(2, "--fix --yes")
ran = world.cudiag("doctor", "--python", world.python, "--fix", "--yes")
installs = [line for line in shown.stdout.splitlines() if line.startswith(f"{world.python} -m pip install ")]
assert ran.status == 0 and shown.stdout in ran.stdout and installs, ran
assert list(world.site.glob("typing_extensions*")) and not list(Path(tempfile.gettempdir()).glob("cudiag-fix-*")), ran
after = Diagnosis(world).answers_with(import_="green")
for line in installs:
    for package in line.removeprefix(f"{world.python} -m pip install ").split():
        assert all(check["finding"] is None or check["finding"]["evidence"].get("package") != package for check in after.json["checks"]), after

# A script that cannot do its work says so, and nothing that comes after it is done.
for name in world.site.glob("typing_extensions*"):
    shutil.rmtree(name) if name.is_dir() else name.unlink()
failed = world.cudiag("doctor", "--python", world.python, "--fix", "--yes", env={"PIP_INDEX_URL": "http://127.0.0.1:9/", "PIP_NO_CACHE_DIR": "1", "PIP_RETRIES": "0"})
assert failed.status == 3 and "the script ended before its end" in failed.stderr, failed
Diagnosis(world).answers_with(import_="red")
