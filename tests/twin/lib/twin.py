"""The twin bed: the same program with and without the shim. Everything that it can see must be equal: stdout, stderr, status.

    bed = Bed()
    program = bed.program("loader_script.c")
    both = bed.twin(program, input="open now libm.so.6\\nerror\\nexit 3\\n")     fails unless the two are equal
    both.recorded("dlopen_failed")                                             what the shim noted meanwhile

A story is tests/twin/SENTENCE.py or tests/shim/SENTENCE.py. Exit status 77: cannot run here, with one line why. Environment:
CUDIAG_BIN, the directory of libcudiag.so; CUDIAG_DUMP, the tool that prints a recording; CUDIAG_MACHINE=aarch64 with
CUDIAG_BIN from a cross build: the same under qemu.
"""

import atexit
import collections
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

TESTS = Path(__file__).resolve().parents[2]
BIN = Path(os.environ.get("CUDIAG_BIN", TESTS.parent / "build" / "bin"))
DUMP = os.environ.get("CUDIAG_DUMP", str(TESTS.parent / "build" / "tests" / "shim" / "cudiag_dump_recording"))
MACHINE = os.environ.get("CUDIAG_MACHINE", "")
CROSS = {"": ("gcc", "g++", []),
         "aarch64": ("aarch64-linux-gnu-gcc", "aarch64-linux-gnu-g++", ["qemu-aarch64", "-L", "/usr/aarch64-linux-gnu"])}
LIMIT_S = 120     # a hang must not hang the suite; nothing here takes a tenth of this


def cannot_run_here(why):
    print(f"cannot run here: {why}", flush=True)
    os._exit(77)


def need(*programs):
    for program in programs:
        if shutil.which(program) is None:
            cannot_run_here(f"no {program}")


def fail(text):
    print(text, flush=True)
    raise SystemExit(1)


Result = collections.namedtuple("Result", "status stdout stderr")


class Both:
    def __init__(self, alone, under, runs):
        self.alone, self.under, self.runs = alone, under, runs

    def recordings(self):
        return [read(path) for path in sorted(self.runs.glob("*/*.rec"))]

    def recorded(self, kind):
        """All entries of a kind, of all processes."""
        return [entry for recording in self.recordings() for entry in recording if entry.kind == kind]


class Entry:
    def __init__(self, line):
        self.kind = line["kind"]
        self.fields = line["fields"]

    def all(self, name):
        return [value for field, value in self.fields if field == name]

    def __getitem__(self, name):
        values = self.all(name)
        return values[0] if values else None

    def __repr__(self):
        return f"{self.kind} {self.fields}"


def read(path):
    """The entries of a recording, its header first (kind "header")."""
    done = subprocess.run([DUMP, str(path)], capture_output=True, text=True, errors="replace", timeout=LIMIT_S)
    if done.returncode != 0:
        fail(f"{path} cannot be read: {done.stdout}{done.stderr}")
    return [Entry(json.loads(line)) for line in done.stdout.splitlines()]


class Bed:
    def __init__(self):
        self.root = Path(tempfile.mkdtemp(prefix="cudiag-twin-"))
        if os.environ.get("CUDIAG_KEEP") != "1":
            atexit.register(shutil.rmtree, self.root, ignore_errors=True)
        else:
            print(f"kept: {self.root}")
        self.c, self.cpp, self.runner = CROSS[MACHINE]
        need(self.c, *self.runner[:1])
        self._count = 0
        self.library = BIN / "libcudiag.so"
        if not self.library.exists():
            fail(f"no {self.library}: build it first, or set CUDIAG_BIN")

    def build(self, output, source, *flags):
        """Compiles a victim to `output` (below the bed's root, or absolute); gives its path."""
        source = TESTS / "victims" / source
        output = self.root / output
        output.parent.mkdir(parents=True, exist_ok=True)
        compiler = self.cpp if source.suffix == ".cpp" else self.c
        command = [compiler, "-g", "-O1", "-w", "-fPIC", "-o", output, source, *flags]
        done = subprocess.run([str(word) for word in command], capture_output=True, text=True, timeout=LIMIT_S)
        if done.returncode != 0:
            fail(f"{' '.join(map(str, command))}\n{done.stderr}")
        return output

    def broken(self, name="libbroken.so"):
        """A library that needs another, which is gone: breakage, not a probe."""
        self.which("libgone.so")
        broken = self.which(name, "-Wl,--no-as-needed", f"-L{self.root}", "-lgone")
        (self.root / "libgone.so").unlink()
        return broken

    def with_stand_in(self):
        """Uses a copy of the shim from now on, with a stand-in for the command beside it; gives the directory of both."""
        place = self.root / "bin"
        place.mkdir()
        shutil.copy(self.library, place)
        self.library = place / "libcudiag.so"
        self.build("bin/cudiag", "stand_in_command.c", "-static")
        return place

    def program(self, source, *flags, name=None):
        return self.build(name or Path(source).stem, source, "-rdynamic", *flags, "-ldl", "-pthread")

    def shared(self, output, source, *flags):
        return self.build(output, source, "-shared", f"-Wl,-soname,{Path(output).name}", *flags)

    def which(self, output, *flags, name=None):
        """A library whose which() says `name`."""
        return self.shared(output, "which.c", f'-DWHICH="{name or output}"', *flags)

    def environment(self, shim, env, runs):
        variables = {k: v for k, v in os.environ.items() if not k.startswith(("LD_", "CUDIAG")) or k == "CUDIAG_KEEP"}
        variables.pop("CUDIAG_KEEP", None)
        variables["LC_ALL"] = "C"
        variables.update({k: str(v) for k, v in (env or {}).items()})
        if shim:
            # CUDIAG_PRINT first: a story may say otherwise. What is printed is judged by the scenarios.
            variables = {"CUDIAG_PRINT": "off", **variables, "CUDIAG_DIR": str(runs)}
            if not self.runner:
                variables["LD_PRELOAD"] = ":".join(filter(None, [str(self.library), variables.get("LD_PRELOAD")]))
        return variables

    def run(self, *command, shim=True, env=None, input="", runs=None, **options):
        runs = runs or self.root / "runs"
        words = [str(word) for word in command]
        if self.runner:
            preload = ["-E", f"LD_PRELOAD={self.library}"] if shim else []
            words = [*self.runner, *preload, *words]
        done = subprocess.run(words, env=self.environment(shim, env, runs), input=input, capture_output=True, text=True,
                              errors="replace", timeout=LIMIT_S, cwd=options.pop("cwd", self.root), **options)
        return Result(done.returncode, done.stdout, done.stderr)

    def twin(self, *command, same=lambda text: text, **options):
        """Runs a program alone and under the shim; fails unless what both did is equal. `same` takes out what may differ."""
        self._count += 1
        runs = self.root / f"runs-{self._count}"
        alone = self.run(*command, shim=False, **options)
        under = self.run(*command, runs=runs, **options)
        for what, a, b in zip(Result._fields, alone, under):
            a, b = (same(a), same(b)) if what != "status" else (a, b)
            if a != b:
                fail(f"$ {' '.join(map(str, command))}\nthe shim changed its {what}\n--- alone\n{a}\n--- under the shim\n{b}")
        return Both(alone, under, runs)


def reported_exactly(both, failures, lookups=()):
    """The recordings hold these failed loads and lookups, as (name, text), each once and in order, and no others."""
    loads = [(entry["name"], entry["text"]) for entry in both.recorded("dlopen_failed")]
    if loads != list(failures):
        fail(f"failed loads\n  expected {list(failures)}\n  recorded {loads}\n{both.under.stdout}")
    texts = [entry["text"] for entry in both.recorded("dlsym_failed")]
    if texts != list(lookups):
        fail(f"failed lookups\n  expected {list(lookups)}\n  recorded {texts}\n{both.under.stdout}")


def told(stdout):
    """Of loader_script's output: the failed loads (name, text), and the texts of failed lookups, as the program was told."""
    loads, lookups = [], []
    name, kind = None, None
    lines = stdout.splitlines()
    absent = "libthis-is-absent.so"
    for verb, result in zip(lines, lines[1:]):
        words = verb.split()
        if " after dlerror: " in result:
            loads.append((absent, result.split(" after dlerror: ")[1]))
        if verb.startswith(" ") or not result.startswith("  "):
            continue
        if words[0] in ("open", "via", "mopen"):
            name = "" if words[-1] in ("(null)", "(empty)") else words[-1]
            kind = "load" if result == "  null" else None
            if result.endswith(", which -"):      # loader_script looks for it in all that it opens, and reads why it is not there
                lookups.append(f"{result[2:].removesuffix(', which -')}: undefined symbol: which")
        elif words[0] in ("sym", "default", "next", "vsym"):
            kind = "lookup" if result == "  null" else None
        elif words[0] == "badclose":
            kind = None
        elif words[0] == "error" and result != "  (none)":
            if kind == "load":
                loads.append((name, result[2:]))
            elif kind == "lookup":
                lookups.append(result[2:])
            kind = None
    return loads, lookups
