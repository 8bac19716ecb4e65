"""What cudiag and its peers say to the same two failures, and how long each takes: run by scripts/bench --peers.

Prints tables in Markdown (docs/benchmarks.md holds them). The failures are real, made of wheels from PyPI:
  1. pip kept an nvJitLink older than cuSPARSE needs: every library is found, one lacks a symbol version;
  2. a library was linked to CUDA 11's runtime, which is nowhere.
"""

import argparse
import os
import re
import shutil
import statistics
import subprocess
import sys
import time
from pathlib import Path

SHOWN = 240     # characters of what a tool says


class Case:
    """`cause`: what a tool must say, in the lines about the failure, to have named the cause."""

    def __init__(self, title, world, library, pathfinder, package, cause):
        self.title, self.world, self.library, self.package, self.cause = title, world, library, package, cause
        self.load = [world.python, "-c", f"import ctypes; ctypes.CDLL('{library}')"]
        self.pathfinder = [world.python, "-c", "from cuda.pathfinder import load_nvidia_dynamic_lib\n"
                                               f"print(load_nvidia_dynamic_lib('{pathfinder}'))"]


def older_nvjitlink(environment):
    world = environment("nvidia-cusparse-cu12==12.3.1.170", "nvidia-nvjitlink-cu12==12.1.105", "cuda-pathfinder")
    return Case("nvidia-cusparse-cu12 12.3.1.170 over nvidia-nvjitlink-cu12 12.1.105", world,
                world.site / "nvidia/cusparse/lib/libcusparse.so.12", "cusparse", "nvidia-nvjitlink-cu12",
                r"libnvJitLink\.so\.12.*\b12\.1\b")     # which file is too old


def absent_runtime(environment):
    world = environment("nvidia-cuda-runtime-cu11==11.8.89", "cuda-pathfinder")
    cudart = world.site / "nvidia/cuda_runtime/lib/libcudart.so.11.0"
    library = world.library("libfused_ops.so", "int cudaGetLastError(void); int run(void) { return cudaGetLastError(); }\n",
                            cudart, f"-Wl,-rpath,{cudart.parent}")
    world.uninstall("nvidia-cuda-runtime-cu11")
    return Case("a library that needs the absent libcudart.so.11.0", world, library, "cudart", "nvidia-cuda-runtime-cu11", r"libcudart\.so\.11\.0")


class Tool:
    """how(case) gives the command and what it adds to the environment; telling(text) the lines that speak of the failure."""

    def __init__(self, name, how, telling, program=None):
        self.name, self.how, self.telling, self.program = name, how, telling, program

    def __call__(self, case, times):
        if self.program and shutil.which(self.program) is None:
            return f"not installed here ({self.program})", "", None, False
        command, more = self.how(case)
        taken = []
        for _ in range(times):
            begin = time.perf_counter()
            done = subprocess.run([str(word) for word in command], env=case.world.variables(more), text=True,
                                  capture_output=True, errors="replace", stdin=subprocess.DEVNULL)
            taken.append(time.perf_counter() - begin)
        text = done.stdout + done.stderr
        named = re.search(case.cause, " ".join(self.telling(text)), re.S) is not None
        return self.shortened(text, case), text, statistics.median(taken), named

    def shortened(self, text, case):
        count = text.count("\n")
        telling = [re.sub(r"^ *\d+:\t", "", line).strip() for line in self.telling(text)]
        if not telling:
            return f"nothing wrong ({count} lines)" if count else "nothing"
        said = re.sub(r"/[^\s(']*/(?=[^/ ]+/lib/[^/ ]+\.so|venv/)", "…/", " / ".join(telling[:3])).replace("|", "\\|")
        said = re.sub(r"\s+", " ", said.replace(str(case.world.root), "…"))
        said = said if len(said) <= SHOWN else said[:SHOWN - 1] + "…"
        rest = len(telling) - 3
        return f"`{said}`" + (f" and {rest} more" if rest > 0 else "") + f" ({count} lines)"


def lines_like(pattern):
    return lambda text: [line for line in text.splitlines() if re.search(pattern, line)]


def explanation(text):
    """The sentence of the first finding, and the command of its first fix."""
    block = re.search(r"^cudiag: .*\n((?:  \S.*\n)*?)  [a-z ]{10}  ", text, re.M)
    command = re.search(r"^ +\$ (.*)$", text, re.M)
    return [re.sub(r"\s+", " ", block[1])] * bool(block) + ["$ " + command[1]] * bool(command)


def tools(binaries, runs):
    wrong = lines_like(r"not found|undefined symbol|cannot open shared object|no version information|version `")
    return [
        Tool("the program alone", lambda case: (case.load, {}), lines_like(r"^OSError")),
        Tool("cudiag (preloaded)",
             lambda case: (case.load, {"LD_PRELOAD": binaries / "libcudiag.so", "CUDIAG_DIR": runs / os.urandom(4).hex()}),
             explanation),
        Tool("`ldd -r FILE`", lambda case: (["ldd", "-r", case.library], {}), wrong, "ldd"),
        Tool("`libtree FILE`", lambda case: (["libtree", case.library], {}), wrong, "libtree"),
        Tool("`LD_DEBUG=libs`", lambda case: (case.load, {"LD_DEBUG": "libs"}), lines_like(r"error:|^OSError")),
        Tool("cuda-pathfinder", lambda case: (case.pathfinder, {}), lines_like(r"^\w*Error\b|LoadedDL")),
    ]


def main():
    parser = argparse.ArgumentParser(prog="scripts/bench --peers", description=__doc__,
                                     formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--build", type=Path, required=True, help=argparse.SUPPRESS)
    parser.add_argument("--bin", type=Path, metavar="DIR", help="the libcudiag.so and cudiag to run")
    parser.add_argument("--times", type=int, default=5, help="runs of each (default %(default)s); the median is shown")
    parser.add_argument("--full", action="store_true", help="also print what each said, whole")
    options = parser.parse_args()
    build = options.build.resolve()
    os.environ.setdefault("CUDIAG_WORLDS", str(build / "worlds"))
    sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "scenario" / "lib"))
    from machine import CannotRun
    from worlds import Environment
    try:
        for make in (older_nvjitlink, absent_runtime):
            case = make(Environment)
            print(f"\n**{case.title}**\n\n| tool | says | names the cause | names the package | gives a command | time |\n"
                  "|---|---|---|---|---|---|")
            everything = []
            for tool in tools((options.bin or build / "bin").resolve(), case.world.root / "runs"):
                said, text, seconds, named = tool(case, options.times)
                cause = "yes" if named else "no"
                names = "yes" if re.search(case.package + r"\b", text.replace(str(case.library), "")) else "no"
                gives = "yes" if re.search(r"pip install .*" + case.package, text) else "no"
                took = "-" if seconds is None else f"{seconds:.2f} s"
                print(f"| {tool.name} | {said} | {cause} | {names} | {gives} | {took} |", flush=True)
                everything.append(f"== {tool.name}\n{text}")
            if options.full:
                print("\n" + "\n".join(everything))
    except CannotRun as reason:
        print(f"bench: {reason}", file=sys.stderr)
        sys.exit(77)


if __name__ == "__main__":
    main()
