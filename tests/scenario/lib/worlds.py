"""Throw-away environments: a virtual environment with wheels from PyPI, and libraries made by the system's compiler.

Wheels are unpacked once per CUDIAG_WORLDS (a lock guards each) and hard-linked into each world, so a world with torch in
it costs no disk. Nothing writes into a linked file: pip and this module replace files, they do not change them.
"""

import contextlib
import fcntl
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tempfile
import atexit
from pathlib import Path

from machine import CannotRun, ldconfig

WORLDS = Path(os.environ.get("CUDIAG_WORLDS", Path(__file__).resolve().parents[3] / "build" / "worlds"))
VERSION = f"{sys.version_info.major}.{sys.version_info.minor}"
UNREACHABLE = re.compile("Temporary failure|Could not resolve|Failed to establish a new connection|Max retries")
PASSED_ON = re.compile(r"^(PATH|LANG|LC_ALL|TERM|TMPDIR|SSL_CERT_FILE|REQUESTS_CA_BUNDLE|\w+_PROXY|\w+_proxy|PIP_\w+)$")

# What `import torch` needs beside torch itself: its CUDA 13.0 libraries at the versions that it pins.
TORCH = ["torch==2.13.0", "numpy", "typing_extensions", "filelock", "jinja2", "markupsafe", "sympy", "mpmath",
         "networkx", "fsspec", "setuptools", "nvidia-cufile==1.15.1.6", "nvidia-cusparselt-cu13==0.8.1",
         "nvidia-nvshmem-cu13==3.4.5", "nvidia-nccl-cu13==2.29.7", "nvidia-cuda-runtime==13.0.96"]
# Big ones, taken from the machine's toolkit where one of CUDA 13 is installed.
TORCH_TOOLKIT = ["nvidia-cublas==13.1.*", "nvidia-cusparse==12.6.*", "nvidia-cufft==12.0.*", "nvidia-curand==10.4.*",
                 "nvidia-cusolver==12.0.*", "nvidia-cudnn-cu13", "nvidia-cuda-nvrtc==13.0.*",
                 "nvidia-cuda-cupti==13.0.*", "nvidia-nvjitlink==13.0.*"]

# A torch of CUDA 12.8, with all that its libraries need but cuDNN.
TORCH_CU12 = ["torch==2.9.1", *(each for each in TORCH if not each.startswith(("torch", "nvidia"))),
              "nvidia-cuda-runtime-cu12==12.8.90", "nvidia-cuda-nvrtc-cu12==12.8.93", "nvidia-cuda-cupti-cu12==12.8.90",
              "nvidia-cublas-cu12==12.8.4.1", "nvidia-cufft-cu12==11.3.3.83", "nvidia-curand-cu12==10.3.9.90",
              "nvidia-cusolver-cu12==11.7.3.90", "nvidia-cusparse-cu12==12.5.8.93", "nvidia-cusparselt-cu12==0.7.1",
              "nvidia-nccl-cu12==2.27.5", "nvidia-nvshmem-cu12==3.3.20", "nvidia-nvjitlink-cu12==12.8.93",
              "nvidia-cufile-cu12==1.13.1.3"]

DEEPSPEED = ["deepspeed==0.19.8", "einops", "hjson", "msgpack", "packaging", "psutil", "py-cpuinfo", "pydantic", "pydantic-core",
             "annotated-types", "typing-inspection", "tqdm"]


def _finds(*libraries):
    """ld.so.cache of this machine has them all."""
    cache = subprocess.run([ldconfig(), "-p"], capture_output=True, text=True).stdout
    return all(f"{name} " in cache for name in libraries)


def torch_wheels():
    """The wheels of a working torch 2.13.0 for CUDA 13.0 on this machine."""
    return TORCH if _finds("libcublasLt.so.13", "libcudnn.so.9", "libcupti.so.13") else TORCH + TORCH_TOOLKIT


def torch_cu12_wheels():
    """The wheels of a working torch 2.9.1 for CUDA 12.8 on this machine."""
    return TORCH_CU12 if _finds("libcudnn.so.9") else [*TORCH_CU12, "nvidia-cudnn-cu12==9.10.2.21"]


@contextlib.contextmanager
def locked(path):
    path.parent.mkdir(parents=True, exist_ok=True)
    with open(path, "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def made_once(directory, make):
    """The directory, made by `make(temporary)` if it is not there yet; safe against others that want it at once."""
    with locked(directory.parent / f".{directory.name}.lock"):
        if not directory.exists():
            temporary = directory.parent / f".{directory.name}.new"
            shutil.rmtree(temporary, ignore_errors=True)
            make(temporary)
            temporary.rename(directory)
    return directory


def pip(*words):
    done = subprocess.run([sys.executable, "-m", "pip", "--disable-pip-version-check", *map(str, words)],
                          capture_output=True, text=True)
    if done.returncode != 0:
        if UNREACHABLE.search(done.stderr):
            raise CannotRun(f"PyPI is not reachable: pip {' '.join(map(str, words))}")
        raise RuntimeError(f"pip {' '.join(map(str, words))}\n{done.stdout}{done.stderr}")


def wheel(requirement):
    """The unpacked wheel of one requirement, without its dependencies."""
    name = re.sub(r"[^A-Za-z0-9.]+", "-", requirement).strip("-.")
    return made_once(WORLDS / "wheels" / f"py{VERSION}" / name,
                     lambda to: pip("install", "--quiet", "--no-deps", "--target", to, requirement))


def debian(*packages, suite="bookworm"):
    """These packages of Debian, unpacked and not installed: a directory with usr in it. The system's apt is not changed."""
    keyring = Path("/usr/share/keyrings/debian-archive-keyring.gpg")
    if shutil.which("apt-get") is None or not keyring.exists():
        raise CannotRun("no apt-get with Debian's keys on this machine")

    def make(to):
        for name in ("state/lists/partial", "cache/archives/partial", "debs"):
            (to / name).mkdir(parents=True)
        sources = to / "sources.list"
        sources.write_text(f"deb [signed-by={keyring}] http://deb.debian.org/debian {suite} main contrib non-free\n")
        options = [f"-oDir::State={to}/state", f"-oDir::Cache={to}/cache", f"-oDir::Etc::SourceList={sources}",
                   "-oDir::Etc::SourceParts=/dev/null", "-oDir::State::Status=/dev/null", "-oAPT::Sandbox::User=root"]
        for words in (["apt-get", *options, "update"], ["apt-get", *options, "download", *packages]):
            done = subprocess.run(words, capture_output=True, text=True, cwd=to / "debs", env=os.environ | {"LC_ALL": "C"})
            if done.returncode != 0 or "Failed to fetch" in done.stderr:
                raise CannotRun(f"Debian's archive gives no {' '.join(packages)}: {done.stderr.strip().splitlines()[-1]}")
        for file in (to / "debs").glob("*.deb"):
            subprocess.run(["dpkg-deb", "-x", file, to], check=True)
        for name in ("state", "cache", "debs"):
            shutil.rmtree(to / name)

    return made_once(WORLDS / "debian" / suite / packages[0], make)


def link_tree(source, to):
    """Hard links to every file of a tree; files that are there already stay."""
    for directory, _, files in os.walk(source):
        target = os.path.join(to, os.path.relpath(directory, source))
        os.makedirs(target, exist_ok=True)
        for file in files:
            with contextlib.suppress(FileExistsError):
                os.link(os.path.join(directory, file), os.path.join(target, file), follow_symlinks=False)


class Environment:
    """A directory with a virtual environment, on the same file system as the wheels; removed when the story ends."""

    def __init__(self, *wheels, pip_inside=False):
        WORLDS.mkdir(parents=True, exist_ok=True)
        story = Path(sys.argv[0]).resolve().parent.name or "story"
        self.root = Path(tempfile.mkdtemp(prefix=f"{story}-", dir=WORLDS))
        self.root.chmod(0o755)
        if os.environ.get("CUDIAG_KEEP") == "1":
            print(f"the world is kept: {self.root}")
        else:
            atexit.register(shutil.rmtree, self.root, ignore_errors=True)
        self.home = self.root / "home"
        self.home.mkdir()
        self.set = {}                      # variables of its programs; None: not set at all
        self.python = self.root / "venv" / "bin" / "python"
        subprocess.run([sys.executable, "-m", "venv", "--without-pip", self.root / "venv"], check=True)
        self.site = self.root / "venv" / "lib" / f"python{VERSION}" / "site-packages"
        for requirement in wheels:
            self.add(requirement)
        if pip_inside:
            self.add("pip")

    def variables(self, more=None):
        """The environment of a program: little more than PATH, so that the machine's own settings decide nothing."""
        given = {k: v for k, v in os.environ.items() if PASSED_ON.match(k)}
        given |= {"HOME": str(self.home), "LANG": "C.UTF-8", "PYTHONNOUSERSITE": "1"} | self.set
        given |= more or {}
        return {k: str(v) for k, v in given.items() if v is not None}

    # -- wheels

    def add(self, *requirements):
        for requirement in requirements:
            link_tree(wheel(requirement), self.site)

    def activate(self):
        """As `source venv/bin/activate` does it, on a PATH without an nvcc of the machine's own; gives that PATH as a list."""
        pip = self.root / "venv/bin/pip"
        if (self.site / "pip").exists() and not pip.exists():
            pip.write_text(f"#!/bin/sh\nexec {self.python} -m pip \"$@\"\n")
            pip.chmod(0o755)
        path = [d for d in os.environ["PATH"].split(":") if not os.path.exists(os.path.join(d, "nvcc"))]
        self.set |= {"VIRTUAL_ENV": str(self.root / "venv"), "PATH": ":".join([str(self.root / "venv/bin"), *path])}
        return self.set["PATH"].split(":")

    def uninstall(self, name):
        """Takes away every file of a package that its RECORD lists."""
        wanted = re.sub(r"[-_.]+", "_", name).lower()
        info = [d for d in self.site.glob("*.dist-info") if re.sub(r"[-_.]+", "_", d.name.split("-")[0]).lower() == wanted]
        for line in (info[0] / "RECORD").read_text().splitlines():
            file = self.site / line.split(",")[0]
            if not str(file).endswith("__init__.py"):      # shared by all packages below nvidia/
                file.unlink(missing_ok=True)
        shutil.rmtree(info[0])

    # -- files of our own

    def write(self, name, text):
        file = self.root / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
        return file

    def package(self, name, text):
        """A Python package in site-packages with this __init__.py."""
        file = self.site / name / "__init__.py"
        file.parent.mkdir(exist_ok=True)
        file.write_text(text)
        return file

    def compile(self, name, source, *options, compiler=None, language=None):
        """Compiles a source text to `name` below the root, by gcc, or by g++ for C++."""
        language = language or ("c++" if re.search(r"namespace|std::|extern \"C\"", source) else "c")
        compiler = compiler or ("g++" if language == "c++" else "gcc")
        if shutil.which(compiler) is None:
            raise CannotRun(f"no {compiler} on this machine")
        file = self.root / name
        file.parent.mkdir(parents=True, exist_ok=True)
        text = file.with_name(file.name + (".cpp" if language == "c++" else ".c"))
        text.write_text(source)
        done = subprocess.run([compiler, "-o", file, text, *map(str, options)], capture_output=True, text=True,
                              env=self.variables())
        text.unlink()
        if done.returncode != 0:
            raise RuntimeError(f"{compiler} {name}\n{done.stderr}")
        return file

    def library(self, name, source, *options, **how):
        """A shared library below the root; `soname` as its options say."""
        return self.compile(name, source, "-shared", "-fPIC", *options, **how)

    def extension(self, name, calls=(), *options, declares="", runs="0", directory=None, **how):
        """A Python extension module in site-packages, whose `run()` calls these C functions, or evaluates `runs`."""
        include = Path(sysconfig.get_paths()["include"])
        if not (include / "Python.h").exists():
            raise CannotRun(f"no Python.h in {include} (python3-dev)")
        declares += "".join(f"int {call}();\n" for call in calls)
        runs = " + ".join(f"{call}()" for call in calls) or runs
        file = (directory or self.site) / f"{name}{sysconfig.get_config_var('EXT_SUFFIX')}"
        return self.library(file.relative_to(self.root), extension_source(name, declares, runs), f"-I{include}", *options,
                            **how)

    # -- a shell of the user's

    def paste(self, command):
        """Runs a proposed command as the user would, in a shell; what it exports is set for the runs that follow."""
        print(f"applying: {command}")
        marker = "--environment-from-here--"
        done = subprocess.run(["bash", "-ec", f"{command}\nprintf '%s\\0' '{marker}'; env -0"], env=self.variables(),
                              capture_output=True, text=True, cwd=self.root, timeout=600)
        if done.returncode != 0:
            raise AssertionError(f"the command proposed fails: {command}\n{done.stdout}{done.stderr}")
        after = dict(pair.split("=", 1) for pair in done.stdout.split(marker + "\0")[1].split("\0") if "=" in pair)
        before = self.variables()
        for name in set(before) | set(after):
            if name not in ("_", "PWD", "OLDPWD", "SHLVL") and before.get(name) != after.get(name):
                self.set[name] = after.get(name)
        return self.set


def extension_source(name, declares, runs):
    return f"""#define PY_SSIZE_T_CLEAN
#include <Python.h>
{declares}
static PyObject* run(PyObject* self, PyObject* args) {{ return PyLong_FromLong({runs}); }}
static PyMethodDef methods[] = {{{{"run", run, METH_NOARGS, ""}}, {{0}}}};
static struct PyModuleDef module = {{PyModuleDef_HEAD_INIT, "{name}", "", -1, methods}};
PyMODINIT_FUNC PyInit_{name}(void) {{ return PyModule_Create(&module); }}
"""
