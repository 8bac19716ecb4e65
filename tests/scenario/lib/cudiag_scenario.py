"""The verbs of a scenario: a broken world, a run under the shim, what must be said, the fix, and a run that is silent.

A scenario is a story of some 15 to 40 lines, tests/scenario/GROUP/SENTENCE/run.py:

    world = World("nvidia-cuda-runtime-cu11==11.8.89")         a Python environment of its own, made of real wheels
    world.extension("fused_ops", CALLS_CUDART, link=...)       real libraries, built by the system's compiler
    world.uninstall("nvidia-cuda-runtime-cu11")                and what broke it
    run = world.under_shim(world.python, "-c", "import fused_ops")
    run.fails_with("libcudart.so.11.0: cannot open shared object file")
    finding = run.said("loader-missing-library", library="libcudart.so.11.0", needed_by=ends("fused_ops.so"))
    finding.proposes(r"pip install .*nvidia-cuda-runtime-cu11")
    finding.apply()
    world.under_shim(world.python, "-c", "import fused_ops").is_silent()

Everything done under the shim is done without it first: exit status and stdout must be the same, and so must stderr but for
the explanation. Exit status 77 says "cannot run here", with one line why.

Environment: CUDIAG_BIN, the directory of libcudiag.so and cudiag; CUDIAG_WORLDS, where wheels and worlds are kept;
CUDIAG_KEEP=1 keeps the world of this run for a look.
"""

import atexit  # noqa: F401 (this and others below: for the stories)
import json
import os
import platform  # noqa: F401
import re
import resource  # noqa: F401
import shlex
import shutil  # noqa: F401
import signal
import subprocess
import sysconfig  # noqa: F401
import sys
import tempfile  # noqa: F401
import time
from pathlib import Path

from builds import KERNEL, NVCC, baton, cmake_build, cuda_11_8, cuda_home, gcc_11, kernel, make_build  # noqa: F401
from builds import need_gcc_after, ninja_build, nvrtc_program, only, python_headers, setup_build, table, torch_build, torch_world  # noqa: F401
from doctor import Diagnosis  # noqa: F401
from drivers import fake_driver, no_real_driver  # noqa: F401
from expectations import describe, ends, has, matches, missing_evidence, same  # noqa: F401
from language import english_in
from machine import CannotRun, control_group, hide_toolkit, in_mount_namespace, joins, mount_point  # noqa: F401
from machine import hide_toolkit_programs_and_headers, need_program, without_root_privileges  # noqa: F401
from measuring import measuring_driver  # noqa: F401
from nccl import nccl_calls  # noqa: F401
from worlds import DEEPSPEED, TORCH, TORCH_TOOLKIT, Environment, link_tree, torch_cu12_wheels, torch_wheels  # noqa: F401
from worlds import wheel  # noqa: F401

BIN = Path(os.environ.get("CUDIAG_BIN", Path(__file__).resolve().parents[3] / "build" / "bin"))
LIBRARY = BIN / "libcudiag.so"
COMMAND = BIN / "cudiag"
GPU_COMMAND = BIN / "cudiag-gpu"
WORLDS_ONLY = os.environ.get("CUDIAG_WORLDS_ONLY") == "1"   # prove that the worlds are broken, with no shim

# A stuck program must not hang the suite; nothing here takes a tenth of this.
LIMIT_S = 300


def fail(text):
    raise AssertionError(text)


def _story_ended(kind, error, trace):
    """One line instead of a traceback where the story itself has ended: a promise broken, or no way to run here."""
    if issubclass(kind, CannotRun):
        print(f"cannot run here: {error}")
        sys.stdout.flush()
        os._exit(77)
    sys.__excepthook__(kind, error, trace)


sys.excepthook = _story_ended
# A script's background job has SIGINT ignored, and so would all programs here. What the shim does not see then: docs/no-harm.md.
signal.signal(signal.SIGINT, signal.default_int_handler)


class World(Environment):
    """A throw-away environment (worlds.Environment) in which programs are run under the shim."""

    def __init__(self, *wheels, **options):
        super().__init__(*wheels, **options)
        self._runs = 0
        if not WORLDS_ONLY and not (LIBRARY.exists() and COMMAND.exists()):
            fail(f"{BIN} holds no libcudiag.so and cudiag: build them first, or set CUDIAG_BIN")

    def alone(self, *command, env=None, **options):
        """Runs the command without the shim: (exit status, stdout, stderr)."""
        done = subprocess.run([str(c) for c in command], env=self.variables(env), capture_output=True, text=True,
                              errors="replace", timeout=LIMIT_S, cwd=options.pop("cwd", self.root), **options)
        return done.returncode, done.stdout, done.stderr

    def under_shim(self, *command, env=None, runs=None, twin=True, fresh=None, **options):
        """Runs the command alone and then under the shim, with a CUDIAG_DIR of its own; gives the second run.

        twin=False: for commands that cannot be run twice, or whose output differs from run to run; twin=WORLDS_ONLY: for those that take long, where
        other stories hold the like against their twins. fresh: a directory that the command writes into; both runs find it as it was.
        """
        self._runs += 1
        runs = runs or self.root / f"runs-{self._runs}"
        as_it_was = fresh and shutil.copytree(fresh, self.root / f"as-it-was-{self._runs}", symlinks=True)
        alone = self.alone(*command, env=env, **options) if twin else None
        if WORLDS_ONLY:
            return Run(self, command, runs, *alone, alone) if alone else _the_end()
        if fresh:
            shutil.rmtree(fresh)
            as_it_was.rename(fresh)
        shimmed = {"LD_PRELOAD": str(LIBRARY), "CUDIAG_DIR": str(runs), "CUDIAG_LANG": "en"} | (env or {})
        run = Run(self, command, runs, *self.alone(*command, env=shimmed, **options), alone)
        run.is_the_twin()
        return run


    def begin_under_shim(self, *command, env=None, **options):
        """Starts the command under the shim, for what is said while it runs; gives it (Running)."""
        self._runs += 1
        return Running(self, command, self.root / f"runs-{self._runs}", env or {}, options)


def _the_end():
    print("worlds only: the rest needs the shim")
    sys.exit(0)


class Running:
    """A program that runs under the shim right now; without it where the worlds alone are proved."""

    def __init__(self, world, command, runs, env, options):
        self.world, self.command, self.runs = world, command, runs
        self._files = [runs.with_suffix(".stdout"), runs.with_suffix(".stderr")]
        shimmed = {} if WORLDS_ONLY else {"LD_PRELOAD": str(LIBRARY), "CUDIAG_DIR": str(runs), "CUDIAG_LANG": "en"}
        with open(self._files[0], "w") as stdout, open(self._files[1], "w") as stderr:
            self.process = subprocess.Popen([str(c) for c in command], env=world.variables(shimmed | env), stdout=stdout,
                                            stderr=stderr, cwd=options.pop("cwd", world.root), start_new_session=True, **options)
        atexit.register(self.kill)

    def kill(self):
        """SIGKILL for all that it started, as a job scheduler sends it."""
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()

    def hangs(self, seconds):
        """It goes on for that long."""
        try:
            fail(f"it ended with {self.process.wait(seconds)}\n{self.so_far()}")
        except subprocess.TimeoutExpired:
            return self

    def shows(self, text, within_s):
        """That text stands in what it wrote before that time is over, and it runs still."""
        if WORLDS_ONLY:
            print(f"hangs as told; within {within_s} s it must show: {text}")
            _the_end()
        end = time.monotonic() + within_s
        while text not in self._files[0].read_text() + self._files[1].read_text():
            if time.monotonic() > end or self.process.poll() is not None:
                fail(f"not shown within {within_s} s while it runs: {text}\n{self.so_far()}")
            time.sleep(0.05)
        return self

    def so_far(self):
        """The run as it stands: what it wrote, and what cudiag reports of it."""
        return Run(self.world, self.command, self.runs, self.process.poll(), *(f.read_text() for f in self._files), None)

    def ends(self, within_s=60):
        """Waits for its end: the run."""
        try:
            self.process.wait(within_s)
        except subprocess.TimeoutExpired:
            fail(f"still there after {within_s} s\n{self.so_far()}")
        return self.so_far()


class Run:
    """One program run under the shim."""

    def __init__(self, world, command, runs, status, stdout, stderr, alone):
        self.world, self.command, self.runs = world, command, runs
        self.status, self.stdout, self.stderr = status, stdout, stderr
        self.alone = alone
        self._report = None

    def __str__(self):
        words = " ".join(shlex.quote(str(c)) for c in self.command)
        return f"$ {words}\nexit status {self.status}\n--- stdout\n{self.stdout}\n--- stderr\n{self.stderr}"

    # -- what the program itself did

    def is_the_twin(self):
        """The program did under the shim what it does without: all that it wrote is there, in its order."""
        if self.alone is None:
            return
        status, stdout, stderr = self.alone
        if self.status != status:
            fail(f"the shim changed the exit status: {status} alone, {self.status} under it\n{self}")
        if same(self.stdout) != same(stdout):
            fail(f"the shim changed stdout\n--- alone\n{stdout}\n--- under the shim\n{self}")
        written = iter(same(self.stderr).splitlines())
        for line in same(stderr).splitlines():
            if line not in written:
                fail(f"under the shim stderr lacks, or has out of order: {line}\n--- alone\n{stderr}\n{self}")

    def fails_with(self, text, status=None):
        """The world is broken in the way told: the program fails, and its user sees this text."""
        if self.status == 0:
            fail(f"the world is not broken\n{self}")
        if status is not None and self.status != status:
            fail(f"exit status {self.status}, not {status}\n{self}")
        if text not in self.stdout + self.stderr:
            fail(f"the program does not show: {text}\n{self}")
        if WORLDS_ONLY:
            print(f"broken as told: {text}")
            _the_end()
        return self

    def was_killed_by(self, number):
        if self.status != -number:
            fail(f"not killed by {signal.Signals(number).name}\n{self}")
        return self

    # -- what cudiag said of it

    def run_directory(self):
        found = [p for p in self.runs.iterdir() if p.is_dir()] if self.runs.is_dir() else []
        if len(found) != 1:
            fail(f"{len(found)} runs were recorded in {self.runs}, not 1: {self.files()}\n{self}")
        return found[0]

    def report(self):
        """`cudiag report --json` of this run: the object."""
        if WORLDS_ONLY:
            _the_end()
        if self._report is None and not self.files():
            self._report = {"findings": []}
        if self._report is None:
            asked = self.world.cudiag("report", "--json", self.run_directory(), runs=self.runs)
            try:
                self._report = json.loads(asked.stdout)
            except json.JSONDecodeError:
                fail(f"cudiag report --json gave no JSON\n{asked}\n{self}")
            if self._report.get("schema") != 1:
                fail(f"not schema 1: {asked.stdout[:300]}")
            errors = [f for f in self._report["findings"] if f["severity"] == "error"]
            if asked.status != (1 if errors else 0):
                fail(f"cudiag report: exit status {asked.status} with {len(errors)} findings of severity error\n{asked}")
            self._is_told_in_chinese(asked)
        return self._report

    def _is_told_in_chinese(self, asked):
        """The same report in Chinese: the same status, and no sentence in English but others' own words."""
        told = self.world.cudiag("report", self.run_directory(), runs=self.runs, env={"CUDIAG_LANG": "zh", "COLUMNS": "160"})
        if told.status != asked.status:
            fail(f"exit status {told.status} in Chinese, {asked.status} in English\n{told}")
        english = english_in(told.stdout, self._report, self.stdout, self.stderr.split("\ncudiag: ")[0])
        if english:
            fail(f"English in the Chinese report: {english}\n{told}")

    def findings(self):
        return [Finding(self, f) for f in self.report()["findings"]]

    def said(self, slug, printed=True, **evidence):
        """There is a finding of this slug whose evidence holds these values; it was printed under the program's own words.

        printed=False: a child's failure, which only the report tells.
        """
        of_slug = [f for f in self.findings() if f.slug == slug]
        if not of_slug:
            fail(f"no finding {slug}, but: {[(f.slug, f.title) for f in self.findings()]}\n{self}")
        for finding in of_slug:
            if finding.fits(evidence):
                break
        else:
            fail("no finding has the evidence asked for:\n" + "\n".join(f.differs(evidence) for f in of_slug) +
                 f"\n{describe(of_slug[0].json)}")
        finding.is_complete()
        # A consequence is told within the block of its cause.
        words = " ".join((finding.evidence["visible_error"] if slug == "hidden-cause" else finding.title).split())
        spoken = " ".join(self.spoken().split())
        if printed and words not in spoken:
            fail(f"stderr does not say: {words}\n{self}")
        if len(re.findall(rf"cudiag: \w+ {slug}(?: \(likely\))? {re.escape(words)}", spoken)) > 1:
            fail(f"stderr says twice: {words}\n{self}")
        return finding

    def spoken(self):
        """What was printed in place: stderr from the first block on."""
        start = self.stderr.find("\ncudiag: ")
        return self.stderr[start:] if start >= 0 else ""

    def did_not_say(self, *slugs):
        for finding in self.findings():
            if finding.slug in slugs:
                fail(f"must not be said here: {finding.slug}: {finding.title}\n{describe(finding.json)}")
        return self

    def proposes_nothing_like(self, *patterns):
        """No finding of this run proposes such a remedy, in its text or its command."""
        for finding in self.findings():
            finding.does_not_propose(*patterns)
        return self

    def files(self):
        return sorted(str(p.relative_to(self.runs)) for p in self.runs.rglob("*") if not p.is_dir())

    def is_silent(self, status=0):
        """It ended as told, and the shim left no trace: not a word, not a file."""
        if self.status != status:
            fail(f"exit status {self.status}, not {status}\n{self}")
        if WORLDS_ONLY:
            return self
        if self.alone is not None and same(self.stderr) != same(self.alone[2]):
            fail(f"stderr is not the program's own\n--- alone\n{self.alone[2]}\n{self}")
        if "cudiag" in self.stdout + self.stderr:
            fail(f"cudiag spoke\n{self}")
        if self.files():
            fail(f"files were left: {self.files()}\n{self}")
        return self


    def says_nothing(self, status):
        """It failed, and cudiag has nothing to say of it; what is recorded is there for `cudiag report`."""
        if self.status != status:
            fail(f"exit status {self.status}, not {status}\n{self}")
        if not WORLDS_ONLY and ("cudiag:" in self.stdout + self.stderr or self.findings()):
            fail(f"cudiag spoke: {[(f.slug, f.title) for f in self.findings()]}\n{self}")
        return self


class Finding:
    def __init__(self, run, data):
        self.run, self.json = run, data
        self.slug, self.title, self.evidence = data["slug"], data["title"], data["evidence"]

    def fits(self, evidence):
        return all(matches(self.evidence.get(key), wanted) for key, wanted in evidence.items())

    def differs(self, evidence):
        return "\n".join(f"  {self.slug}: {key} is {self.evidence.get(key)!r}, not {wanted}"
                         for key, wanted in evidence.items() if not matches(self.evidence.get(key), wanted))

    def is_complete(self):
        """All that the catalogue requires of a finding of this slug is there."""
        missing = missing_evidence(self.json)
        if missing:
            fail(f"{self.slug} lacks {missing}\n{describe(self.json)}")

    def says(self, *texts):
        """These texts stand in the finding: in its title, evidence or limits."""
        whole = json.dumps(self.json)
        for text in texts:
            if str(text) not in whole:
                fail(f"{self.slug} does not name {text}\n{describe(self.json)}")
        return self

    def remedies(self):
        return [f"{fix['text']}\n{fix['command']}" for fix in self.json["fixes"]]

    def proposes(self, pattern, first=False, proved=None):
        """One of the remedies fits the pattern (the first of them does, if asked so)."""
        fixes = self.json["fixes"][:1] if first else self.json["fixes"]
        for fix in fixes:
            if re.search(pattern, f"{fix['text']}\n{fix['command']}") and proved in (None, fix["proved"]):
                return self
        fail(f"{self.slug} does not propose /{pattern}/ (proved: {proved})\n{describe(self.json)}")

    def does_not_propose(self, *patterns):
        for remedy in self.remedies():
            for pattern in patterns:
                if re.search(pattern, remedy):
                    fail(f"{self.slug} proposes the wrong /{pattern}/: {remedy}\n{describe(self.json)}")
        return self

    def causes(self, slug):
        """This finding is told as the cause of one with the other slug."""
        named = {f["id"]: f["slug"] for f in self.run.report()["findings"]}
        if slug not in [named.get(i) for i in self.json["cause_of"]]:
            fail(f"{self.slug} is not the cause of {slug}\n{describe(self.run.report())}")
        return self

    def command(self, pattern=""):
        """The first command proposed that fits the pattern."""
        for fix in self.json["fixes"]:
            if fix["command"] and re.search(pattern, fix["command"]):
                return fix["command"]
        fail(f"{self.slug} proposes no command like /{pattern}/\n{describe(self.json)}")

    def apply(self, pattern=""):
        """Pastes that command into a shell, as the user would. Gives the environment that it leaves: `export` counts."""
        return self.run.world.paste(self.command(pattern))


class Asked:
    """What the cudiag command answered."""

    def __init__(self, words, status, stdout, stderr):
        self.words, self.status, self.stdout, self.stderr = words, status, stdout, stderr

    def __str__(self):
        return f"$ cudiag {' '.join(self.words)}\nexit status {self.status}\n{self.stdout}{self.stderr}"

    def ends_with(self, status, *texts):
        if self.status != status:
            fail(f"exit status {self.status}, not {status}\n{self}")
        for text in texts:
            if text not in self.stdout + self.stderr:
                fail(f"the command does not say: {text}\n{self}")
        return self


def _cudiag(self, *words, runs=None, env=None, **options):
    if WORLDS_ONLY:
        _the_end()
    words = [str(w) for w in words]
    given = {"CUDIAG_LANG": "en"} | ({"CUDIAG_DIR": str(runs)} if runs else {}) | (env or {})
    done = subprocess.run([str(COMMAND), *words], env=self.variables(given), capture_output=True, text=True,
                          errors="replace", timeout=LIMIT_S, cwd=self.root, **options)
    return Asked(words, done.returncode, done.stdout, done.stderr)


World.cudiag = _cudiag
