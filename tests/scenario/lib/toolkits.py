"""A CUDA toolkit in one directory, as NVIDIA's packages and "devel" images lay it out, put together from what PyPI and Debian have.

The wheels of CUDA 13 are such a toolkit. Those of CUDA 11 and 12 lie in a directory each, and no wheel has their nvcc
(nvidia-cuda-nvcc-cu12 holds ptxas and libnvvm): that is Debian's, which has one of 11.8 (Debian 12) and one of 12.4 (Debian 13), and none
of 12.8.
"""

from machine import CannotRun
from worlds import TORCH_TOOLKIT, WORLDS, debian, link_tree, made_once, wheel

# The whole of a working nvcc 13.0.
NVCC = ["nvidia-cuda-nvcc==13.0.88", "nvidia-nvvm==13.0.88", "nvidia-cuda-crt==13.0.88", "nvidia-cuda-runtime==13.0.96",
        "nvidia-cuda-cccl==13.0.85"]

_CUDA_13_0 = [*NVCC, *(each for each in TORCH_TOOLKIT if "cudnn" not in each), "nvidia-cuda-profiler-api==13.0.*", "nvidia-nvtx==13.0.*"]
# cccl of 12.5: the wheels of 12.1 to 12.4 lack nv/target (12.3.101 is withdrawn from PyPI for "Missing headers").
_CUDA_12_4 = [f"nvidia-{name}-cu12=={version}" for name, version in {
    "cuda-nvcc": "12.4.131", "cuda-runtime": "12.4.127", "cuda-cccl": "12.5.39", "cuda-nvrtc": "12.4.127", "nvtx": "12.4.127",
    "cuda-profiler-api": "12.4.127", "cublas": "12.4.5.8", "cusparse": "12.3.1.170", "cusolver": "11.6.1.9", "cufft": "11.2.1.3",
    "curand": "10.3.5.147", "nvjitlink": "12.4.127"}.items()]
_CUDA_11_8 = [f"nvidia-{name}-cu11=={version}" for name, version in {
    "cuda-nvcc": "11.8.89", "cuda-runtime": "11.8.89", "cuda-cccl": "11.8.89", "cuda-nvrtc": "11.8.89", "nvtx": "11.8.86",
    "cuda-profiler-api": "11.8.86", "cublas": "11.11.3.6", "cusparse": "11.7.5.86", "cusolver": "11.4.1.48", "cufft": "10.9.0.58",
    "curand": "10.3.0.86"}.items()]

# Release of the image: the wheels, and the Debian whose package has the nvcc that they lack.
RELEASES = {"11.8.0": (_CUDA_11_8, "bookworm"), "12.4.1": (_CUDA_12_4, "trixie"), "13.0.2": (_CUDA_13_0, None)}

_PROFILE = """TOP = $(_HERE_)/..
NVVMIR_LIBRARY_DIR = $(TOP)/nvvm/libdevice
LD_LIBRARY_PATH += $(TOP)/lib64:
PATH += $(TOP)/nvvm/bin:$(_HERE_):
INCLUDES += "-I$(TOP)/include" $(_SPACE_)
LIBRARIES =+ $(_SPACE_) "-L$(TOP)/lib64"
"""


def debian_nvcc(suite):
    """Debian's package of nvcc, unpacked."""
    return debian("nvidia-cuda-toolkit", *(["libnvvm4"] if suite == "bookworm" else []), suite=suite)


def lay_debian_nvcc(unpacked, home):
    """nvcc and what it starts, from Debian's places to NVIDIA's."""
    own = unpacked / "usr/lib/nvidia-cuda-toolkit"          # its gcc and g++ there are Debian's wrappers: they pick gcc-11
    link_tree(own / "bin/crt", home / "bin/crt")
    link_tree(own / "libdevice", home / "nvvm/libdevice")
    (home / "nvvm/bin").mkdir()
    (home / "nvvm/bin/cicc").hardlink_to(own / "bin/cicc")
    (home / "bin/nvcc").hardlink_to(own / "bin/nvcc")
    for name in ("cudafe++", "ptxas", "fatbinary", "nvlink", "bin2c"):
        (home / "bin" / name).hardlink_to(unpacked / "usr/bin" / name)
    for nvvm in unpacked.glob("usr/lib/x86_64-linux-gnu/libnvvm.so.4.*"):
        (home / "lib64").mkdir(exist_ok=True)
        (home / "lib64/libnvvm.so.4").hardlink_to(nvvm)
    (home / "bin/nvcc.profile").write_text(_PROFILE)


def toolkit_layer(release):
    """A directory with usr/local/cuda of that release (of NVIDIA's images, as 13.0.2), to be laid over a root. Made once."""
    if release not in RELEASES:
        raise CannotRun(f"no registry has the nvcc of CUDA {release}: there are toolkits of {', '.join(RELEASES)}")
    wheels, suite = RELEASES[release]
    name = "cuda-" + release.rpartition(".")[0]

    def make(to):
        home = to / "usr/local" / name
        (home / "lib").mkdir(parents=True)
        (home / "lib64").symlink_to("lib")
        (home.parent / "cuda").symlink_to(name)
        if suite:
            lay_debian_nvcc(debian_nvcc(suite), home)
        for package in [directory for each in wheels for directory in wheel(each).glob("nvidia/*") if directory.is_dir()]:
            for part in ("bin", "include", "lib", "nvvm"):
                link_tree(package / part, home / part)
        for file in (home / "lib").glob("lib*.so.*"):      # as the -dev packages have them, for the linker
            plain = file.with_name(file.name.split(".so.")[0] + ".so")
            if not plain.exists():
                plain.symlink_to(file.name)

    return made_once(WORLDS / "toolkits" / release, make)
