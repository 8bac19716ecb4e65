"""Cheap broken environments: one world, changed in a mount namespace of its own by a few lines of shell.

A case says what is changed, with which variables, and of what (by slug) a build or an import must then fail; None: of nothing.
"""

import random
from dataclasses import dataclass, field

# Defined before the lines of a case: `over DIR` makes a directory writable for this case alone, `hide DIR` empties it,
# `gone HEADER` takes a header out of the machine's toolkit.
PRELUDE = r"""
set -e
mount -o remount,bind,ro /              # a line that forgets `over` must fail, not change the machine
mount -t tmpfs tmpfs /tmp
mount -t tmpfs tmpfs "$SCRATCH"
n=0
over() {
    n=$((n + 1)); mkdir -p "$SCRATCH/$n/up" "$SCRATCH/$n/work"
    mount -t overlay overlay "-olowerdir=$1,upperdir=$SCRATCH/$n/up,workdir=$SCRATCH/$n/work" "$1"
}
hide() { n=$((n + 1)); mkdir -p "$SCRATCH/$n"; mount --bind "$SCRATCH/$n" "$1"; }
no_toolkit() { over /usr/local; rm -rf /usr/local/cuda /usr/local/include/* /usr/local/bin/nvcc /usr/local/cuda-13.0/bin /usr/local/cuda-13.0/include /usr/local/cuda-13.0/targets/x86_64-linux/include; }
gone() { over /usr/local; for h in "$@"; do rm -rf "/usr/local/include/$h" "/usr/local/include/cccl/$h" "/usr/local/cuda-13.0/targets/x86_64-linux/include/$h" "/usr/local/cuda-13.0/targets/x86_64-linux/include/cccl/$h"; done; }
site=$WORLD/venv/lib/python$VERSION/site-packages
over "$WORLD"
"""

HOME = {"CUDA_HOME": "/usr/local/cuda-13.0"}
ARCH = {"TORCH_CUDA_ARCH_LIST": "9.0"}
NO_NINJA = "over /usr/bin; rm -f /usr/bin/ninja; rm -f $WORLD/venv/bin/ninja"

CPP = "build-missing-compiler"
HEADER = "build-missing-header"
MISMATCH = "build-toolkit-mismatch"
HOST = "build-unsupported-host-compiler"
ARCHITECTURE = "build-unsupported-arch"


@dataclass
class Case:
    name: str
    world: str = "torch13"               # "torch13", "torch12", "bare"
    change: str = ""                     # lines of shell, as root in the namespace
    set: dict = field(default_factory=dict)
    cause: str | None = None             # the slug that must be named first; None: nothing is wrong
    memory: int = 0                      # of a cgroup around it, bytes
    slice: bool = False                  # of the quick part that runs in CI


def toolkits():
    """name, change, variables, cause: where a toolkit may be, and what may be wrong with it."""
    wheels = {"CUDA_HOME": "$site/nvidia/cu13"}
    return [
        ("default toolkit", "", {}, None),
        ("CUDA_HOME", "", HOME, None),
        ("CUDA_PATH", "", {"CUDA_PATH": "/usr/local/cuda-13.0"}, None),
        ("nvcc in PATH", "", {"PATH+": "/usr/local/cuda-13.0/bin"}, None),
        ("no toolkit", "no_toolkit", {}, CPP),
        ("CUDA_HOME nowhere", "", {"CUDA_HOME": "/opt/nonexist"}, CPP),
        ("runtime only", "no_toolkit; mkdir -p $WORLD/rt/lib64", {"CUDA_HOME": "$WORLD/rt"}, CPP),
        ("toolkit of wheels", "no_toolkit", wheels, None),
        ("wheels without math headers", "no_toolkit; rm -f $site/nvidia/cu13/include/cu{blas,sparse,solver}*", wheels, HEADER),
        ("wheels without links", "no_toolkit; rm -rf $site/nvidia/cu13/lib64 $site/nvidia/cu13/lib/libcudart.so /usr/local/lib64 "
                                 "/usr/local/cuda-13.0/lib64/libcudart.so /usr/local/cuda-13.0/lib64/libcudart.a "
                                 "/usr/local/cuda-13.0/targets/x86_64-linux/lib/libcudart.so", wheels, "build-link-failed"),
        ("nvcc not executable", "over /usr/local; chmod -x /usr/local/cuda-13.0/bin/nvcc", HOME, CPP),
        ("no cicc", "over /usr/local; rm -f /usr/local/cuda-13.0/nvvm/bin/cicc /usr/local/nvvm/bin/cicc; rm -f /usr/local/bin/cicc", HOME, CPP),
        ("no ptxas", "over /usr/local; rm -f /usr/local/cuda-13.0/bin/ptxas /usr/local/bin/ptxas", HOME, CPP),
    ]


def grid():
    cases = []

    def add(name, **how):
        if not any(case.name == name for case in cases):
            cases.append(Case(name, **how))

    for world in ("torch13", "torch12"):
        mismatch = MISMATCH if world == "torch12" else None
        for name, change, variables, cause in toolkits():
            # By a toolkit of another major nothing is built, whatever else is there or not.
            for ninja in (True, False) if not mismatch else (True,):
                for arch in (True, False) if not mismatch else (True,):
                    steps = "; ".join(filter(None, [change, "" if ninja else NO_NINJA]))
                    found = cause if cause == CPP else mismatch or cause
                    first = found or (None if arch else ARCHITECTURE) or (None if ninja else CPP)
                    add(f"{world}, {name}{'' if ninja else ', no ninja'}{'' if arch else ', no arch list'}", world=world,
                        change=steps, set=variables | (ARCH if arch else {}), cause=first,
                        slice=world == "torch13" and arch and (ninja and name in ("default toolkit", "no toolkit", "CUDA_HOME nowhere",
                              "wheels without math headers") or not ninja and name == "CUDA_HOME"))
    for header in ("cusparse.h", "cublas_v2.h", "cublasLt.h", "cublas_api.h", "cusolverDn.h", "cusolver_common.h", "cuda_runtime.h", "cuda_runtime_api.h",
                   "cuda.h", "crt/host_config.h", "cuda_fp16.h", "cuda_bf16.h", "thrust", "nv", "fatbinary_section.h",
                   "crt/host_runtime.h", "curand.h", "nvml.h", "cufft.h", "npp.h", "nvrtc.h", "nvToolsExt.h"):
        harmless = header in ("curand.h", "nvml.h", "cufft.h", "npp.h", "nvrtc.h", "nvToolsExt.h")
        for number, variables in enumerate((HOME, {})):
            add(f"torch13, without {header}{', default toolkit' if number else ''}", change=f"gone {header}", set=variables | ARCH,
                cause=None if harmless else HEADER, slice=header == "cusolverDn.h" and not number)
    add("torch13, without Python.h", change="mkdir -p $SCRATCH/e; mount --bind $SCRATCH/e $PYTHON_INCLUDE", set=HOME | ARCH, cause=HEADER, slice=True)
    add("torch13, math headers by CPATH", change="no_toolkit; mkdir $WORLD/more; mv $site/nvidia/cu13/include/cu{blas,sparse,solver}* $WORLD/more",
        set=ARCH | {"CUDA_HOME": "$site/nvidia/cu13", "CPATH": "$WORLD/more"})
    add("torch13, cudart by LIBRARY_PATH", change="no_toolkit; rm -rf $site/nvidia/cu13/lib64 /usr/local/lib64 /usr/local/cuda-13.0/lib64/libcudart.* "
        "/usr/local/cuda-13.0/targets/x86_64-linux/lib/libcudart.so; mkdir $WORLD/links; "
        "mv $site/nvidia/cu13/lib/libcudart.so $WORLD/links; ln -sf $site/nvidia/cu13/lib/libcudart.so.13 $WORLD/links/libcudart.so",
        set=ARCH | {"CUDA_HOME": "$site/nvidia/cu13", "LIBRARY_PATH": "$WORLD/links"})

    # host compilers
    wrapper = "printf '#!/bin/sh\\nexec /usr/bin/g++ \"$@\"\\n' > $WORLD/venv/bin/{0}; chmod +x $WORLD/venv/bin/{0}"
    later = "for p in gcc g++ c++ cc; do printf '#!/bin/sh\\nexec /usr/bin/'$p' -U__GNUC__ -D__GNUC__=17 \"$@\"\\n' > $WORLD/venv/bin/$p; chmod +x $WORLD/venv/bin/$p; done"
    gone = "over /usr/bin; rm -f {0}"
    every = "/usr/bin/c++ /usr/bin/g++ /usr/bin/gcc /usr/bin/cc /usr/bin/*-g++* /usr/bin/*-gcc* /usr/bin/g++-* /usr/bin/gcc-* /usr/bin/clang*"
    for world in ("torch13", "bare"):
        add(f"{world}, no compiler at all", world=world, change=gone.format(every), set=HOME | ARCH, cause=CPP, slice=world == "torch13")
        add(f"{world}, no gcc for nvcc", world=world, change=gone.format("/usr/bin/gcc"), set=HOME | ARCH, cause=CPP)
        add(f"{world}, gcc after nvcc's limit", world=world, change=later, set=HOME | ARCH, cause=HOST)
        add(f"{world}, CC=gcc-11", world=world, change="", set=HOME | ARCH | {"CC": "$GCC11/gcc-11", "CXX": "$GCC11/g++-11"})
        add(f"{world}, CC=clang-14", world=world, change="", set=HOME | ARCH | {"CC": "clang++-14"})
    add("torch13, no c++", change=gone.format("/usr/bin/c++"), set=HOME | ARCH, cause=CPP)
    add("torch13, CXX nowhere", set=HOME | ARCH | {"CXX": "g++-99"}, cause=CPP)
    add("torch13, CC nowhere", set=HOME | ARCH | {"CC": "gcc-99"}, cause=CPP)
    add("torch13, CXX is a wrapper", change=wrapper.format("my-g++"), set=HOME | ARCH | {"CXX": "my-g++"})
    add("torch13, CXX=clang++-14", set=HOME | ARCH | {"CXX": "clang++-14"})
    add("torch13, no cc1plus", change="over /usr/lib/gcc; rm -f /usr/lib/gcc/x86_64-linux-gnu/*/cc1plus", set=HOME | ARCH, cause=CPP)
    add("torch13, no headers of the C++ library", change="hide /usr/include/c++", set=HOME | ARCH, cause=HEADER)
    add("torch13, ninja that fails", change="printf '#!/bin/sh\\nexit 1\\n' > $WORLD/venv/bin/ninja; chmod +x $WORLD/venv/bin/ninja",
        set=HOME | ARCH, cause=CPP)
    add("torch13, ninja of the venv alone", change="over /usr/bin; mv /usr/bin/ninja $WORLD/venv/bin/",
        set=HOME | ARCH)
    add("torch13, ccache that fails", change="printf '#!/bin/sh\\nexit 1\\n' > $WORLD/venv/bin/ccache; chmod +x $WORLD/venv/bin/ccache",
        set=HOME | ARCH | {"TORCH_NO_COMPILER_WRAPPER": None}, cause=CPP)
    add("torch13, a wrapper that is not asked", change="printf '#!/bin/sh\\nexit 1\\n' > $WORLD/venv/bin/ccache; chmod +x $WORLD/venv/bin/ccache", set=HOME | ARCH)

    # architectures
    for world, home in (("torch13", HOME), ("torch12", HOME)):
        for value, right in {"9.0": True, "9.0a": True, "8.0": True, "7.5": True, "7.0": False, "5.0": False, "12.0": True, "12.9": False,
                             "Hopper": True, "Ampere": True, "Volta": False, "hopper": False, "90": False, "sm_90": False, "9.0;": False,
                             "8.6+PTX": True, "8.9": True, "10.0": True, "12.0a": True, "native": False, "": False}.items():
            if world == "torch12" and value not in ("9.0", "7.0", "native"):
                continue
            add(f"{world}, TORCH_CUDA_ARCH_LIST={value}", world=world, set=home | {"TORCH_CUDA_ARCH_LIST": value},
                cause=MISMATCH if world == "torch12" else None if right else ARCHITECTURE,
                slice=world == "torch13" and value in ("7.0", "12.9"))

    # an nvcc of another major
    for variables, extra in ((ARCH, ""), ({"TORCH_CUDA_ARCH_LIST": "8.0"}, ", 8.0")):
        for world in ("torch13", "torch12"):
            add(f"{world}, nvcc 11.8{extra}", world=world, change="no_toolkit", set=variables | {"CUDA_HOME": "$CUDA118"}, cause=MISMATCH)
    add("bare, nvcc 11.8 and gcc 12", world="bare", change="no_toolkit", set={"CUDA_HOME": "$CUDA118"}, cause=HOST)
    add("bare, nvcc 11.8 and gcc 11", world="bare", change="no_toolkit", set={"CUDA_HOME": "$CUDA118", "CC": "$GCC11/gcc-11"})
    for name, change, variables, cause in toolkits():
        if "math" not in name:
            add(f"bare, {name}", world="bare", change=change, set=variables, cause=None if cause == "build-link-failed" else cause)

    # libraries and packages
    def damage(name, change, world="torch13", cause="loader-missing-library", **variables):
        add(f"{world}, {name}", world=world, change=change, set=HOME | ARCH | variables, cause=cause,
            slice=name in ("no nccl", "old libstdc++ first", "an empty LD_LIBRARY_PATH entry"))

    for world in ("torch13", "torch12"):
        cu = "cu13" if world == "torch13" else "cuda_runtime"
        major = "13" if world == "torch13" else "12"
        damage("no cudart", f"rm -f $site/nvidia/{cu}/lib/libcudart.so.{major}*; over /usr/local; rm -f /usr/local/cuda-13.0/targets/x86_64-linux/lib/libcudart.so.{major}* "
               f"/usr/local/cuda-13.0/lib*/libcudart.so.{major}*", world, "*")
        damage("no nccl", "rm -rf $site/nvidia/nccl", world, "*")
        damage("no cufile", "rm -f $site/nvidia/cu13/lib/libcufile* $site/nvidia/cufile/lib/libcufile*", world, "*")
        damage("no cusparselt", "rm -rf $site/nvidia/cusparselt", world, "*")
        damage("no nvshmem", "rm -rf $site/nvidia/nvshmem", world, "*")
        damage("an older nccl", f"rm -rf $site/nvidia/nccl; cp -a $OLD_NCCL_{major}/nvidia/nccl $site/nvidia/", world, "*")
        damage("no typing_extensions", "rm -rf $site/typing_extensions*", world, "package-missing")
        for module in ("sympy", "networkx", "jinja2", "fsspec", "filelock", "numpy", "mpmath", "markupsafe"):
            damage(f"no {module}", f"rm -rf $site/{module}*", world, "?")
        damage("no setuptools", "rm -rf $site/setuptools* $site/_distutils_hack $site/pkg_resources", world, "?")
        damage("no _C", "rm -f $site/torch/_C.*", world, "package-missing")
        damage("_C of another Python", "cd $site/torch; mv _C.cpython-*.so _C.cpython-39-x86_64-linux-gnu.so", world, "package-missing")
        damage("no torch", "rm -rf $site/torch $site/torch-*", world, "package-missing")
        damage("torch_cuda cut short", "cp $site/torch/lib/libc10_cuda.so /$SCRATCH/c; rm $site/torch/lib/libc10_cuda.so; head -c 20000 /$SCRATCH/c > $site/torch/lib/libc10_cuda.so", world, "*")
        damage("c10 gone", "rm -f $site/torch/lib/libc10.so", world, "*")
        damage("no libgomp", "rm -f $site/torch/lib/libgomp*; rm -rf $site/torch.libs", world, "?")
        damage("old libstdc++ first", "", world, "loader-shadowed-library", LD_LIBRARY_PATH="$OLD_STDCXX")
        damage("stub driver first", "", world, None, LD_LIBRARY_PATH="/usr/local/cuda-13.0/lib64/stubs")
        damage("toolkit first", "", world, None, LD_LIBRARY_PATH="/usr/local/cuda-13.0/lib64")
        damage("an older nvjitlink first", "", world, "?", LD_LIBRARY_PATH="$OLD_NVJITLINK/nvidia/nvjitlink/lib")
        damage("an older nccl first", "", world, "?", LD_LIBRARY_PATH=f"$OLD_NCCL_{major}/nvidia/nccl/lib")
        damage("an empty LD_LIBRARY_PATH entry", "", world, None, LD_LIBRARY_PATH=":/nowhere:")
        damage("a text as libcudart first", f"mkdir $WORLD/t; echo no > $WORLD/t/libcudart.so.{major}; echo no > $WORLD/t/libstdc++.so.6", world, "?", LD_LIBRARY_PATH="$WORLD/t")
        damage("wheels of the other CUDA beside", f"cp -an $OTHER_{major}/. $site/", world, "?")

    # what is in the way of a build though all tools are there
    add("torch13, a stale lock", change="mkdir -p $WORLD/x/fused_adam; touch $WORLD/x/fused_adam/lock; echo > $WORLD/x/fused_adam/build.ninja",
        set=HOME | ARCH | {"TORCH_EXTENSIONS_DIR": "$WORLD/x"}, cause="build-stale-lock")
    add("torch13, a lock of another extension", change="mkdir -p $WORLD/x/other; touch $WORLD/x/other/lock; echo > $WORLD/x/other/build.ninja",
        set=HOME | ARCH | {"TORCH_EXTENSIONS_DIR": "$WORLD/x"})
    add("torch13, extensions on a read-only file system", change="mkdir $WORLD/ro; mount -t tmpfs -o ro tmpfs $WORLD/ro",
        set=HOME | ARCH | {"TORCH_EXTENSIONS_DIR": "$WORLD/ro/x"}, cause="build-no-directory")
    for megabytes, right in ((500, False), (700, False), (900, False), (6000, True)):
        add(f"torch13, {megabytes} MB of memory", set=HOME | ARCH | {"MAX_JOBS": "1"}, memory=megabytes << 20,
            cause=None if right else "build-out-of-memory")
    return cases


def pairs(count, seed):
    """Two cases in one, drawn by chance: environments that nobody thought of. What must be named is not known of them."""
    chance = random.Random(seed)
    single = [case for case in grid() if case.world == "torch13" and not case.memory]
    drawn = [chance.sample(single, 2) for _ in range(count)]
    return [Case(f"{a.name} + {b.name.removeprefix('torch13, ')}", change="; ".join(filter(None, (a.change, b.change))),
                 set=a.set | b.set, cause="?") for a, b in drawn]
