"""Pieces that several stories break in the same way."""

import re
import shutil
import subprocess
from pathlib import Path

from cudiag_scenario import CannotRun, World, link_tree, wheel
from worlds import TORCH_TOOLKIT

# libstdc++ of gcc 4.6: what an enterprise system or an old environment may still have.
_GCC_4_6 = ["GLIBCXX_3.4", *(f"GLIBCXX_3.4.{n}" for n in range(1, 16)), "CXXABI_1.3", *(f"CXXABI_1.3.{n}" for n in range(1, 6))]


def old_libstdcxx(world, directory):
    """A libstdc++.so.6 that ends at GLIBCXX_3.4.15: ld.so looks at the names of versions before it looks for a symbol."""
    symbol = {version: version.replace(".", "_") for version in _GCC_4_6}
    script = world.write("old-libstdc++.map", "".join(f"{v} {{ global: {s}; }};\n" for v, s in symbol.items()))
    return world.library(f"{directory}/libstdc++.so.6", "".join(f"int {s};\n" for s in symbol.values()),
                         "-Wl,-soname,libstdc++.so.6", f"-Wl,--version-script,{script}", "-nostdlib", language="c")


def system_libstdcxx():
    """The system's own libstdc++.so.6.0.NN, by its full name."""
    printed = subprocess.run(["gcc", "-print-file-name=libstdc++.so.6"], capture_output=True, text=True).stdout.strip()
    file = Path(printed).resolve()
    if not re.fullmatch(r"libstdc\+\+\.so\.6\.0\.\d+", file.name):
        raise CannotRun(f"the system's libstdc++ is not where gcc says: {printed}")
    return file


def driver_stub(world):
    """The toolkit's stub of libcuda; where there is no toolkit, a double that answers as it does (it is not on PyPI)."""
    for stub in Path("/usr/local").glob("cuda*/targets/*/lib/stubs/libcuda.so"):
        return stub
    names = ["cuInit", "cuDriverGetVersion", "cuDeviceGetCount", "cuGetProcAddress", "cuGetProcAddress_v2", "cuGetExportTable"]
    return world.library("opt/stub/libcuda.so", "".join(f"int {n}() {{ return 34; }}\n" for n in names),
                         "-Wl,-soname,libcuda.so.1", "-nostdlib")


def stub_first_on_the_library_path(world):
    stubs = world.root / "opt/cuda/lib64/stubs"
    stubs.mkdir(parents=True)
    shutil.copy(driver_stub(world), stubs / "libcuda.so")
    (stubs / "libcuda.so.1").symlink_to("libcuda.so")
    world.set["LD_LIBRARY_PATH"] = str(stubs)
    return stubs


def fused_without_cudart(*wheels):
    """A world, and a library in it that was linked to CUDA 11's runtime, which is nowhere any more."""
    world = World(*wheels)
    cudart = wheel("nvidia-cuda-runtime-cu11==11.8.89") / "nvidia/cuda_runtime/lib/libcudart.so.11.0"
    return world, world.library("venv/lib/libfused.so", "int cudaGetLastError(); int fused() { return cudaGetLastError(); }",
                                cudart)


def needs_glibc_2_99(world, name):
    """A library that was linked to a glibc of the future."""
    script = world.write("future.map", "GLIBC_2.99 { global: gethour; };\n")
    future = world.library("future/libc.so.6", "int gethour() { return 0; }", "-nostdlib", "-Wl,-soname,libc.so.6",
                           f"-Wl,--version-script,{script}")
    return world.library(name, "int gethour(); int hour() { return gethour(); }", "-nostdlib", future)


def toolkit_without_cudart(world):
    """A folder with the CUDA libraries that torch needs, as a toolkit installs them, but for its runtime."""
    folder = world.root / "opt/cuda-13.0/lib64"
    for requirement in TORCH_TOOLKIT:
        for lib in wheel(requirement).glob("nvidia/*/lib"):
            link_tree(lib, folder)
    return folder
