"""scripts/images, step by step in a Debian 12 root: both Dockerfiles for CUDA 13.0 come to their end, with fused Adam compiled and
loaded; and what is taken away from them on the way ends the build at the next check, which names it."""
import time

from packages import *

IMAGES = TESTS.parent / "scripts" / "images"
# Beside the roots: a layer is on a disk, and a step sees it by an overlay, which cannot write to every file system (/tmp may be one).
DIST.mkdir(parents=True, exist_ok=True)
bed = Path(tempfile.mkdtemp(prefix="images-", dir=DIST.parent))
atexit.register(shutil.rmtree, bed, ignore_errors=True)
context = bed / "context"
(context / "dist").mkdir(parents=True)
(context / "scripts").symlink_to(IMAGES.parent)
(context / "dist" / package(".whl").name).symlink_to(package(".whl"))


def replayed(file, **planted):
    """The replay, with a step `do` before the step `at` for each that is planted. All share their layers, so what one did the next
    has; code for one GPU, since none runs it here."""
    text = (IMAGES / file).read_text()
    for do, at in planted.values():
        assert text.count(at) == 1, at
        text = text.replace(at, f"RUN {do}\n{at}")
    (bed / file).write_text(text)
    begin = time.monotonic()
    done = subprocess.run([IMAGES / "replay", bed / file, "--layers", bed / "layers", "--context", context, "--arg", "ARCHITECTURES=9.0",
                           "--arg", "MAX_JOBS=2"], capture_output=True, text=True)
    print(f"{file}{''.join(f', {name}' for name in planted)}: {time.monotonic() - begin:.0f} s", flush=True)
    if done.returncode == 3:
        cannot_run_here(done.stderr.strip().splitlines()[-1])
    return done


def steps(done):
    return [line for line in done.stdout.splitlines() if re.match(r"RUN |COPY ", line)]


def stopped(done, at, finding, names):
    """The build ended there, and not before or behind, by that finding."""
    assert done.returncode == 1 and done.stderr.rstrip().endswith(f"replay: exit status 1: RUN {at}"), done
    assert steps(done)[-1] == f"RUN {at}" and finding in done.stderr and names in done.stderr, done


whole = replayed("Dockerfile.multistage")
assert whole.returncode == 0 and whole.stdout.endswith("replay: every step did\n"), whole
assert "check-runtime: torch and deepspeed.ops.adam.fused_adam_op find what they need" in whole.stdout, whole

# The same begins the other, and is not done twice; its own last step is.
developed = replayed("Dockerfile")
assert developed.returncode == 0 and developed.stdout.endswith("replay: every step did\n"), developed
done_before = developed.stdout.count("  done before\n")
assert done_before == len(steps(developed)) - 1, (done_before, steps(developed))

doctor, check = "cudiag doctor", "check-runtime deepspeed.ops.adam.fused_adam_op"
slimmed = replayed("Dockerfile.multistage", without_compiler=("apt-get purge -y g++ g++-12", f"RUN {doctor}\n"))
stopped(slimmed, at=doctor, finding="cudiag explain build-missing-compiler", names="c++")
left_behind = replayed("Dockerfile.multistage", without_cublas=(
    "rm /opt/venv/lib/python3*/site-packages/nvidia/cu13/lib/libcublas.so.*", f"RUN {check}\n"))
stopped(left_behind, at=check, finding="cudiag explain package-broken", names="libcublas.so.13")
