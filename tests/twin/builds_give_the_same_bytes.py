"""gcc, nvcc, make, ninja, cmake, pip and ccache under the shim write the very bytes that they write without it: every file of a
build is compared, also of one that fails. Nothing is left of the recording of one that ends well."""
import hashlib
import sysconfig

from twin import *

if MACHINE:
    cannot_run_here("qemu's guest cannot exec without binfmt_misc")
bed = Bed()
SOURCES = {
    "sum.h": "int sum(int count, ...);\n",
    "sum.c": '#include <stdarg.h>\n#include "sum.h"\nint sum(int count, ...) { va_list all; int result = 0; va_start(all, count);\n'
             "while (count-- > 0) result += va_arg(all, int); va_end(all); return result; }\n",
    "main.cpp": '#include <algorithm>\n#include <cstdio>\n#include <vector>\nextern "C" {\n#include "sum.h"\n}\n'
                'int main() { std::vector<int> v{3, 1, 2}; std::sort(v.begin(), v.end()); std::printf("%d %d\\n", sum(2, v[0], v[2]), __LINE__); }\n',
    "wrong.c": '#include "sum.h"\n#include <absent_header.h>\n',
    "kernel.cu": "__global__ void scale(float* x, float by) { x[threadIdx.x] *= by; }\n"
                 "void launch(float* x) { scale<<<1, 32>>>(x, 2); }\n",
    "Makefile": "CFLAGS = -g -O2\nall: program libsum.so libsum.a\nprogram: main.o sum.o\n\tg++ -o $@ $^\n%.o: %.cpp\n\tg++ $(CFLAGS) -MMD -c $< -o $@\n"
                "libsum.so: sum.c\n\tgcc $(CFLAGS) -flto -frandom-seed=one -fPIC -shared $< -o $@\nlibsum.a: sum.o\n\tar rcsD $@ $^\n",
    "build.ninja": "rule cc\n  command = $cc -g -O2 -MMD -MF $out.d -c $in -o $out\n  depfile = $out.d\n  deps = gcc\n"
                   "rule link\n  command = g++ -o $out $in\nbuild main.o: cc main.cpp\n  cc = g++\nbuild sum.o: cc sum.c\n  cc = gcc\nbuild program: link main.o sum.o\n",
    "CMakeLists.txt": "cmake_minimum_required(VERSION 3.18)\nproject(sums C CXX)\nadd_library(sum SHARED sum.c)\nadd_executable(program main.cpp)\n"
                      "target_link_libraries(program sum)\n",
    "module.c": '#include <Python.h>\nstatic struct PyModuleDef module = {PyModuleDef_HEAD_INIT, "sums"};\n'
                "PyMODINIT_FUNC PyInit_sums(void) { return PyModule_Create(&module); }\n",
    "setup.py": 'from setuptools import Extension, setup\nsetup(name="sums", version="1.0", ext_modules=[Extension("sums", ["module.c"])])\n',
}
# What differs between any two runs: logs of times, and python's own cache.
UNLIKE = {".ninja_log", ".ninja_deps", "CMakeConfigureLog.yaml", "CMakeOutput.log", "CMakeError.log"}


def lay_out(directory):
    shutil.rmtree(directory, ignore_errors=True)
    shutil.rmtree(bed.root / "cache", ignore_errors=True)
    directory.mkdir(parents=True)
    for name, text in SOURCES.items():
        (directory / name).write_text(text)
        os.utime(directory / name, (1_700_000_000, 1_700_000_000))


def bytes_below(directory):
    return {str(path.relative_to(directory)): hashlib.sha256(path.read_bytes()).hexdigest()
            for path in sorted(directory.rglob("*")) if path.is_file() and not path.is_symlink() and path.name not in UNLIKE}


def is_the_same(name, *commands, env=None, status=0, made=()):
    """Runs the commands in the same directory, laid out anew, without and with the shim; compares what they print and write."""
    work, seen = bed.root / "work", []
    runs = bed.root / f"runs-{name}"
    for shim in (False, True):
        lay_out(work)
        results = [bed.run(*command, shim=shim, cwd=work, env={"SOURCE_DATE_EPOCH": "1700000000", "LC_ALL": "C"} | (env or {}), runs=runs)
                   for command in commands]
        seen.append((results, bytes_below(work)))
    (alone, files_alone), (under, files_under) = seen
    if [r.status for r in alone][-1] != status:
        fail(f"{name}: the build itself is not what the story needs: {alone}")
    for a, u in zip(alone, under):
        if a.status != u.status or cleaned(a.stdout) != cleaned(u.stdout) or cleaned(a.stderr) != cleaned(u.stderr):
            fail(f"{name}: printed another thing under the shim\n--- alone\n{a}\n--- under\n{u}")
    for file in made:
        assert any(re.search(file, name) for name in files_alone), (name, file, sorted(files_alone))
    if files_alone != files_under:
        fail(f"{name}: other files or bytes: {sorted(f for f in files_alone | files_under if files_alone.get(f) != files_under.get(f))}")
    if status == 0:
        assert not list(runs.glob("*")), (name, list(runs.rglob("*")))
    print(f"{name}: {len(files_alone)} files alike")


def cleaned(text):
    """Without times and the names of temporary directories."""
    text = re.sub(r"\(\d+\.\d+s\)|\d+\.\d+ ?s\b", "TIME", text)
    return re.sub(r"pip-[\w-]+|/tmp/[\w.-]+", "TEMPORARY", text)


for options in (["-g", "-O2"], ["-O3", "-flto", "-fno-fat-lto-objects", "-frandom-seed=one"], ["-g3", "-save-temps=obj"], ["-pipe", "-E"]):
    is_the_same("gcc " + " ".join(options), ["gcc", *options, "-c", "sum.c", "-o", "sum.o"], ["g++", *options, "-c", "main.cpp", "-o", "main.o"],
                made=["sum.o", "main.o"])
is_the_same("gcc that fails", ["gcc", "-c", "wrong.c", "-o", "wrong.o"], status=1)
for program in ("clang",):
    if shutil.which(program):
        is_the_same(program, [program, "-g", "-O2", "-c", "sum.c", "-o", "sum.o"], [program, "-shared", "-o", "libsum.so", "sum.o"], made=["libsum.so"])
is_the_same("make", ["make", "-j2"], ["./program"], made=["program", r"libsum\.a"])
is_the_same("make -k with a failure", ["make", "-k", "wrong.o", "sum.o"], status=2, made=["sum.o"])
if shutil.which("ninja"):
    is_the_same("ninja", ["ninja", "-j1"], ["ninja", "-t", "compdb"], ["ninja"], made=["program"])
if shutil.which("cmake"):
    for generator in ["Unix Makefiles"] + (["Ninja"] if shutil.which("ninja") else []):
        is_the_same(f"cmake, {generator}", ["cmake", "-S", ".", "-B", "out", "-G", generator], ["cmake", "--build", "out"], ["cmake", "--install", "out", "--prefix", "inst"],
                    made=["out/program", r"out/libsum\.so", "CMakeCache.txt"])
if shutil.which("ccache"):
    # Its own files hold times: what it gives is compared, from the compiler the first time, from the cache the second.
    cache = {"CCACHE_DIR": str(bed.root / "cache")}
    is_the_same("ccache", *[["ccache", "gcc", "-g", "-O2", "-c", "sum.c", "-o", f"sum{n}.o"] for n in (1, 2)], env=cache, made=["sum2.o"])
nvcc = shutil.which("nvcc") or "/usr/local/cuda/bin/nvcc"
if os.access(nvcc, os.X_OK):
    # --keep: the names of intermediate files are in the object, and are made of the process id without it.
    is_the_same("nvcc", [nvcc, "-arch=sm_90", "--keep", "-lineinfo", "-Xcompiler", "-fPIC", "-c", "kernel.cu", "-o", "kernel.o"],
                [nvcc, "-arch=sm_90", "-cubin", "kernel.cu", "-o", "kernel.cubin"], [nvcc, "-ptx", "kernel.cu", "-o", "kernel.ptx"],
                made=["kernel.o", "kernel.cubin", "kernel.ptx"])
if Path(sysconfig.get_paths()["include"], "Python.h").exists():
    python = bed.root / "venv/bin/python"
    subprocess.run([sys.executable, "-m", "venv", bed.root / "venv"], check=True)
    subprocess.run([python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "setuptools==80.9.0"], check=True)
    is_the_same("pip", [python, "-m", "pip", "wheel", "--quiet", "--disable-pip-version-check", "--no-build-isolation", "--no-deps", "-w", "wheels", "."],
                made=[r"wheels/sums-1\.0-.*\.whl"])
