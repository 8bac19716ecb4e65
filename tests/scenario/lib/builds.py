"""CUDA builds: an nvcc made of wheels, a kernel, and the recipes by which people build it.

No torch here, so that nothing can hang on its words. The toolkit of the wheels is broken by nature: it has neither the
headers of the math libraries nor what a linker looks for.
"""

import subprocess
import sysconfig
from pathlib import Path

from machine import CannotRun, need_program
from toolkits import NVCC, debian_nvcc, lay_debian_nvcc  # noqa: F401
from worlds import debian, extension_source, link_tree, wheel


def table(thousands, place=""):
    """A source text that costs a compiler memory: gcc 12 takes 200 MB and 2 s for 1,000 thousand numbers."""
    ten = "1.5, 2.5, 3.5, 4.5, 5.5, 6.5, 7.5, 8.5, 9.5, 10.5,"
    text = f"#define TEN {ten}\n#define HUNDRED {'TEN ' * 10}\n#define THOUSAND {'HUNDRED ' * 10}\n"
    return text + f"{place} double table[] = {{ {'THOUSAND ' * thousands} }};\n"


KERNEL = """
__global__ void scale(float* x, float by, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) x[i] *= by;
}
extern "C" int fused_scale(float* x, float by, int n) {
    scale<<<(n + 255) / 256, 256>>>(x, by, n);
    return cudaGetLastError();
}
"""


def cuda_home(world, links=True):
    """CUDA_HOME of the wheels of NVCC in an activated environment; links: as if cuda-cudart-dev were there too."""
    home = world.site / "nvidia/cu13"
    world.activate()
    world.set["CUDA_HOME"] = str(home)
    if links:
        (home / "lib64").symlink_to("lib")
        (home / "lib/libcudart.so").symlink_to("libcudart.so.13")
    return home


def kernel(world, *headers, name="csrc/fused.cu"):
    """One kernel and the C function that launches it, after these headers."""
    return world.write(name, "".join(f"#include <{h}>\n" for h in headers) + KERNEL)


def ninja_build(world, source, directory="build/fused", home="$$CUDA_HOME", arch="90", flags="", main=None, link="-lcudart"):
    """A build.ninja as torch.utils.cpp_extension writes it; gives its directory."""
    main = main or world.write("csrc/main.cpp", "extern \"C\" int fused_scale(float*, float, int);\n"
                                                "int twice(float* x) { return fused_scale(x, 2, 1); }\n")
    file = world.write(f"{directory}/build.ninja", f"""ninja_required_version = 1.3
cxx = c++
nvcc = {home}/bin/nvcc
cflags = -fPIC -std=c++20
cuda_cflags = -gencode=arch=compute_{arch},code=sm_{arch} --compiler-options '-fPIC' -std=c++20 {flags}
ldflags = -shared -L{home}/lib64 {link}

rule compile
  command = $cxx -MMD -MF $out.d $cflags -c $in -o $out
  depfile = $out.d
  deps = gcc

rule cuda_compile
  depfile = $out.d
  deps = gcc
  command = $nvcc --generate-dependencies-with-compile --dependency-output $out.d $cuda_cflags -c $in -o $out

rule link
  command = $cxx $in $ldflags -o $out

build main.o: compile {main}
build fused.cuda.o: cuda_compile {source}
build fused.so: link main.o fused.cuda.o
default fused.so
""")
    return file.parent


def make_build(world, source, directory="build/make"):
    """A Makefile as projects with a kernel or two have it; gives its directory."""
    return world.write(f"{directory}/Makefile", f"""NVCC = $(CUDA_HOME)/bin/nvcc
fused.so: fused.o
\t$(NVCC) -shared -o $@ $^
fused.o: {source}
\t$(NVCC) -arch=sm_90 -Xcompiler -fPIC -c -o $@ $<
""").parent


def cmake_build(world, source, directory="build/cmake"):
    """A project of CMake's language CUDA, and the command that configures it; gives its build directory and the command."""
    lists = world.write("cmake/CMakeLists.txt", f"""cmake_minimum_required(VERSION 3.18)
project(fused LANGUAGES CXX CUDA)
add_library(fused SHARED {source})
""")
    out = world.root / directory
    out.mkdir(parents=True)
    return out, ["cmake", "-S", lists.parent, "-B", out, "-DCMAKE_CUDA_ARCHITECTURES=90",
                 f"-DCMAKE_CUDA_COMPILER={world.set['CUDA_HOME']}/bin/nvcc"]


def python_headers():
    """Where Python.h is."""
    directory = Path(sysconfig.get_paths()["include"])
    if not (directory / "Python.h").exists():
        raise CannotRun("no Python.h on this machine (python3-dev)")
    return directory


def need_gcc_after(release):
    """The host compiler is a gcc newer than that one, which a story's nvcc refuses."""
    version = subprocess.run(["gcc", "-dumpversion"], capture_output=True, text=True).stdout.strip()
    if int(version.split(".")[0] or 0) <= release:
        raise CannotRun(f"gcc of this machine is {version}, which is not too new")
    return version


def only(world, *programs):
    """PATH holds these programs of the machine, the environment's own, and no others; gives it as a list."""
    directory = world.root / "bin"
    directory.mkdir(exist_ok=True)
    for program in programs:
        (directory / program).symlink_to(Path(need_program(program)).resolve())
    path = [str(world.root / "venv/bin"), str(directory)]
    world.set["PATH"] = ":".join(path)
    return path


def setup_build(world, source, flags=""):
    """A package whose setup.py calls nvcc itself, as those do that do not build with torch's classes; gives its directory."""
    package = world.root / "fused-ops"
    calls = extension_source("fused_ops", "int fused_scale(float*, float, int);", "fused_scale(0, 2, 0)")
    world.write("fused-ops/fused_ops.c", calls)
    world.write(f"fused-ops/{source.name}", source.read_text())
    world.write("fused-ops/setup.py", f"""import os
from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext

CUDA_HOME = os.environ["CUDA_HOME"]
NVCC_FLAGS = "-arch=sm_90 {flags}".split()


class BuildWithNvcc(build_ext):
    def build_extensions(self):
        self.compiler.src_extensions.append(".cu")
        by_gcc = self.compiler._compile

        def compile(object, source, extension, *more):
            if not source.endswith(".cu"):
                return by_gcc(object, source, extension, *more)
            self.compiler.spawn([CUDA_HOME + "/bin/nvcc", *NVCC_FLAGS, "-Xcompiler", "-fPIC", "-c", source, "-o", object])

        self.compiler._compile = compile
        super().build_extensions()


setup(name="fused-ops", version="1.0", cmdclass={{"build_ext": BuildWithNvcc}},
      ext_modules=[Extension("fused_ops", ["fused_ops.c", "{source.name}"], library_dirs=[CUDA_HOME + "/lib64"],
                             libraries=["cudart", "stdc++"], runtime_library_dirs=[CUDA_HOME + "/lib64"])])
""")
    return package


def baton(world):
    """A script that builds a directory under a lock file, as torch.utils.file_baton and its kin do it; gives its path."""
    return world.write("jit.py", """import os, subprocess, sys, time
directory = sys.argv[1]
lock = os.path.join(directory, "lock")
try:
    held = os.open(lock, os.O_CREAT | os.O_EXCL)
except FileExistsError:
    while os.path.exists(lock):
        time.sleep(0.1)
else:
    try:
        subprocess.run(["ninja", "-C", directory], check=True, stdout=subprocess.PIPE)
    finally:
        os.close(held)
        os.remove(lock)
print("loaded", os.path.join(directory, "fused.so"))
""")


def cuda_11_8(world):
    """CUDA_HOME of an activated environment: nvcc 11.8, which only Debian has, laid out as NVIDIA's own toolkit."""
    home = world.root / "opt/cuda-11.8"
    lay_debian_nvcc(debian_nvcc("bookworm"), home)
    for requirement in ("nvidia-cuda-nvcc-cu11==11.8.89", "nvidia-cuda-runtime-cu11==11.8.89"):
        for package in wheel(requirement).glob("nvidia/cuda_*"):
            link_tree(package / "include", home / "include")
            link_tree(package / "lib", home / "lib64")
    (home / "lib64/libcudart.so").symlink_to("libcudart.so.11.0")
    world.activate()
    world.set["CUDA_HOME"] = str(home)
    return home


def gcc_11(world):
    """gcc-11 and g++-11 on PATH, as Debian's packages would put them there; gives their directory."""
    unpacked = debian("g++-11", "gcc-11", "cpp-11", "gcc-11-base", "libgcc-11-dev", "libstdc++-11-dev")
    link_tree(unpacked / "usr", world.root / "usr")
    directory = world.root / "usr/bin"
    if subprocess.run([directory / "g++-11", "--version"], capture_output=True).returncode != 0:
        raise CannotRun("Debian's gcc 11 does not start on this machine")
    world.set["PATH"] += f":{directory}"
    return directory


def torch_world(world, **options):
    """Makes a world of the wheels of TORCH and NVCC the place of a JIT build for one card, one job at a time."""
    home = cuda_home(world, **options)
    world.set |= {"TORCH_EXTENSIONS_DIR": str(world.root / "extensions"), "TORCH_CUDA_ARCH_LIST": "9.0", "MAX_JOBS": "1",
                  "TORCH_NO_COMPILER_WRAPPER": "1"}     # no ccache, wherever the story runs
    return home


def torch_build(world, *headers):
    """A program that has torch build a kernel at run time; gives the command and the directory of the build."""
    fused = kernel(world, *headers)
    script = world.write("finetune.py", f"""from torch.utils.cpp_extension import load
load("fused", [{str(fused)!r}], is_python_module=False)
print("built and loaded")
""")
    directory = world.root / "extensions"
    directory.mkdir()
    return [world.python, script], directory / "fused"


def nvrtc_program(world, source, *options):
    """A program that has the wheel's NVRTC compile a kernel, as CuPy does: in its own process. `options` are expressions of its own."""
    return world.write("jit.py", f"""
import ctypes, glob, os, site
packages = site.getsitepackages()[0]
nvrtc = ctypes.CDLL(glob.glob(packages + "/nvidia/cuda_nvrtc/lib/libnvrtc.so.12")[0])
options = [b"--gpu-architecture=compute_90", {", ".join(options)}]
program = ctypes.c_void_p()
nvrtc.nvrtcCreateProgram(ctypes.byref(program), {source.encode()!r}, b"fused.cu", 0, None, None)
status = nvrtc.nvrtcCompileProgram(program, len(options), (ctypes.c_char_p * len(options))(*options))
size = ctypes.c_size_t()
nvrtc.nvrtcGetProgramLogSize(program, ctypes.byref(size))
log = ctypes.create_string_buffer(size.value)
nvrtc.nvrtcGetProgramLog(program, log)
if status: raise RuntimeError(log.value.decode())
print("compiled")
""")
