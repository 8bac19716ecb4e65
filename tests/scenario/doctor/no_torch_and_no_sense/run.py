"""No torch, another Python that has one, a Python that does not run, folders that cannot be read, and questions that make no sense:
each is answered in a line or a table, never by a crash."""
from cudiag_scenario import *

world = World()
world.package("numpy", "")
empty = Diagnosis(world).answers_with(import_="red", load="red")
finding = empty.check("package-missing")["finding"]
assert finding["evidence"]["package"] == "torch" and finding["evidence"]["python"] == str(world.python), finding
assert any(fix["command"] == f"{world.python} -m pip install torch" for fix in finding["fixes"]), finding

# A venv in the working directory has one.
other = world.root / "venv2"
subprocess.run([sys.executable, "-m", "venv", "--without-pip", other], check=True)
torch = next((other / "lib").glob("python*")) / "site-packages/torch"
torch.mkdir()
(torch / "version.py").write_text("__version__ = '2.13.0'\n")
(torch / "__init__.py").write_text("")
elsewhere = Diagnosis(world, env={"VIRTUAL_ENV": str(other)})
assert str(other / "bin/python") in elsewhere.check("package-missing")["finding"]["evidence"]["others"], elsewhere
part = json.loads(world.cudiag("doctor", "--json", env={"VIRTUAL_ENV": str(other)}).stdout)
assert part["python"]["chosen_by"] == "VIRTUAL_ENV" and part["torch"]["version"] == "2.13.0", part
assert part["answers"][0]["health"] == "red" and "in part only" in part["answers"][0]["text"], part

# A Python that does not run, and one that is none.
broken = world.write("broken", "#!/bin/sh\necho 'error while loading shared libraries: libpython3.11.so.1.0' >&2\nexit 127\n")
broken.chmod(0o755)
for python, words in ((broken, "does not run: error while loading shared libraries: libpython3.11.so.1.0"),
                      ("/bin/true", "did not answer as a Python does")):
    told = world.cudiag("doctor", "--python", python).ends_with(1)
    assert words in " ".join(told.stdout.split()), told
world.cudiag("doctor", "--python", world.root / "nowhere").ends_with(2, "is no program")
world.cudiag("doctor", env={"PATH": "/nowhere", "VIRTUAL_ENV": "", "CONDA_PREFIX": ""}).ends_with(3, "there is no Python")
world.cudiag("doctor", "--dry-run").ends_with(2, "--dry-run goes with --fix")
world.cudiag("doctor", "--fix", "--json").ends_with(2, "exclude each other")
world.cudiag("doctor", "--fix", "--python", world.python).ends_with(2, "nobody to ask")
world.cudiag("doctor", "--unknown").ends_with(2)

# Folders that this user may not read hold nothing.
world.site.chmod(0)
locked = subprocess.run([COMMAND, "doctor", "--python", world.python, "--json"], env=world.variables(), capture_output=True, text=True,
                        preexec_fn=without_root_privileges)
world.site.chmod(0o755)
assert locked.returncode == 1 and json.loads(locked.stdout)["answers"][0]["health"] == "red", locked
