"""scripts/images/replay reads the two Dockerfiles and the Apptainer definition as docker and Apptainer do, as far as --plan and what it
refuses show it, and the definition has the steps of the Dockerfile."""
from packages import *

IMAGES = TESTS.parent / "scripts" / "images"
bed = Path(tempfile.mkdtemp())
atexit.register(shutil.rmtree, bed, ignore_errors=True)


def replay(*words, status=0):
    done = subprocess.run([IMAGES / "replay", *words], capture_output=True, text=True)
    assert done.returncode == status and "Traceback" not in done.stderr, (words, done)
    return done.stdout if status == 0 else done.stderr.strip()


def written(text, name="Dockerfile"):
    (bed / name).write_text(text)
    return bed / name


# A comment between continued lines is none of the step, as docker has it; what is joined is one line.
plan = replay("--plan", written("# first\nFROM a\nRUN one \\\n  # why\n && two\nCOPY x \\\n  /y\n")).splitlines()
assert [" ".join(step.split()) for step in plan] == ["FROM a", "RUN one && two", "COPY x /y"], plan

plans = {name: replay("--plan", name).splitlines() for name in ("Dockerfile", "Dockerfile.multistage")}
for name, plan in plans.items():
    began = sum(bool(re.match(r"[A-Z]+ ", line)) for line in (IMAGES / name).read_text().splitlines() if not line.startswith(" "))
    assert len(plan) == began, (name, began, plan)

# A definition: its arguments replaced, by those given too, and %test as its last step, in the image's own environment.
told = replay("--plan", "cudiag.def", "--arg", "TORCH=2.9.1", "--arg", "ARCHITECTURES=9.0")
assert told.startswith("FROM nvidia/cuda:13.0.2-devel-ubuntu24.04\n") and "{{" not in told, told
assert 'pip install "torch==2.9.1"' in told and told.count('TORCH_CUDA_ARCH_LIST="9.0"') == 2, told
_, test = told.split("\nRUN ")[1:]
assert test.split()[-2:] == ["cudiag", "doctor"] and "export VIRTUAL_ENV=/opt/venv PATH=/opt/venv/bin:$PATH" in test, test


def commands(text):
    """What steps install, make and ask, without the shell's own words between them."""
    text = re.sub(r"\$\{TORCH_INDEX:\+[^}]*\}|\$\{index:\+[^}]*\}", "", re.sub(r"\\\n", " ", text))
    return [" ".join(each.split()) for each in re.split(r"\n|&&|^RUN ", text, flags=re.M)
            if re.match(r"\s*(MAX_JOBS=\S+ .*|DEBIAN_FRONTEND=\S+ )?(pip|cudiag|python3|apt-get) ", each)]


dockers = "\n".join(step for step in plans["Dockerfile"] if step.startswith("RUN "))
for name, value in re.findall(r'^ARG (\w+)="?([^"\n]*)"?$', "\n".join(plans["Dockerfile"]), re.M):
    dockers = dockers.replace(f"${{{name}}}", value)
apptainers = commands(replay("--plan", "cudiag.def").split("\nRUN ")[1].replace("/opt/cudiag-", "/tmp/cudiag-"))
missing = [each for each in apptainers if each not in commands(dockers)]
assert len(apptainers) == 9 and not missing, (missing, apptainers, commands(dockers))

assert "ONBUILD is not known here" in replay(written("FROM a\nONBUILD RUN x\n"), status=3)
for word in ["--plan", "/nowhere"], ["--arg", "CUDA"], ["--layers"]:
    assert replay(*word, status=2), word
assert "nothing stands for the base image ubuntu:24.04" in replay(written("FROM ubuntu:24.04\n"), status=3)
assert "no registry has the nvcc of CUDA 12.8.1" in replay("--arg", "CUDA=12.8.1", status=3)
