"""The shim cross-built for aarch64, and the twin bed under qemu-user as far as its guest can go without binfmt_misc."""
from twin import *

if MACHINE:
    cannot_run_here("this is the story that starts the others there")
need("aarch64-linux-gnu-g++", "qemu-aarch64", "cmake")
sources = TESTS.parent
build = Path(os.environ.get("CUDIAG_CACHE", tempfile.gettempdir())) / "aarch64"
for command in (["cmake", "-S", sources, "-B", build, f"-DCMAKE_TOOLCHAIN_FILE={sources}/cmake/aarch64.cmake", "-DCUDIAG_SHIM_ONLY=ON",
                 "-DCUDIAG_TESTS=OFF", "-DCMAKE_BUILD_TYPE=Release"], ["cmake", "--build", build, "--target", "cudiag_shim"]):
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, timeout=600)
    if done.returncode != 0:
        fail(f"{command}\n{done.stdout}{done.stderr}")
environment = {**os.environ, "CUDIAG_BIN": str(build / "bin"), "CUDIAG_DUMP": DUMP, "CUDIAG_MACHINE": "aarch64"}
ran = 0
for story in sorted([*(TESTS / "twin").glob("*.py"), *(TESTS / "shim").glob("*.py")]):
    if story.name == Path(__file__).name:
        continue
    done = subprocess.run([sys.executable, str(story)], env=environment, capture_output=True, text=True, timeout=600)
    if done.returncode not in (0, 77):
        fail(f"{story.name} on aarch64: exit status {done.returncode}\n{done.stdout}{done.stderr}")
    ran += done.returncode == 0
    print(f"{story.stem}: {'skipped, ' + done.stdout.strip() if done.returncode == 77 else 'well'}")
assert ran >= 6, f"only {ran} stories ran"
