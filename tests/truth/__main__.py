"""Runs the grid, prints where doctor and truth differ, and the table; exit 1 below the thresholds.

  scripts/doctor-truth [--only PATTERN] [--slice] [--pairs N --seed S] [--reports N] [--json FILE] [--shard I/N]
"""

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "scenario" / "lib"))
from builds import NVCC, cuda_11_8, gcc_11                                                          # noqa: E402
from broken import old_libstdcxx                                                                    # noqa: E402
from environments import PRELUDE, grid, pairs                                                              # noqa: E402
from machine import CannotRun, control_group, leave                                                 # noqa: E402
from worlds import DEEPSPEED, VERSION, Environment, link_tree, torch_cu12_wheels, torch_wheels, wheel   # noqa: E402

BIN = Path(os.environ.get("CUDIAG_BIN", HERE.parents[1] / "build" / "bin"))
QUESTIONS = ("import", "build", "load")
LEAST = 0.99


class Worlds:
    """The worlds that the cases change, and what they take things from."""

    def __init__(self, cases):
        wanted = {case.world for case in cases}
        text = "\n".join(f"{case.change} {case.set}" for case in cases)
        self.parts = Environment()
        self.made, self.places = {}, {}
        math = ["nvidia-cusparse==12.6.*", "nvidia-cublas==13.1.*", "nvidia-cusolver==12.0.*"]
        if "torch13" in wanted:
            self.make("torch13", *torch_wheels(), *NVCC, *math, *DEEPSPEED)
        if "torch12" in wanted:
            self.make("torch12", *torch_cu12_wheels(), *NVCC, *math)
        if "bare" in wanted:
            self.make("bare", *NVCC)
        if "CUDA118" in text:
            self.places["CUDA118"] = cuda_11_8(self.parts)
        if "GCC11" in text:
            self.parts.activate()
            self.places["GCC11"] = gcc_11(self.parts)
        if "OLD_STDCXX" in text:
            self.places["OLD_STDCXX"] = old_libstdcxx(self.parts, "old").parent
        for name, requirement in {"OLD_NCCL_13": "nvidia-nccl-cu13==2.28.9", "OLD_NCCL_12": "nvidia-nccl-cu12==2.18.3",
                                  "OLD_NVJITLINK": "nvidia-nvjitlink-cu12==12.1.105", "OTHER_13": "nvidia-cuda-runtime-cu12==12.8.90",
                                  "OTHER_12": "nvidia-cuda-runtime==13.0.96"}.items():
            if name in text:
                self.places[name] = wheel(requirement)

    def make(self, name, *wheels):
        world = self.made[name] = Environment(*wheels)
        home = world.site / "nvidia/cu13"
        (home / "lib64").symlink_to("lib")
        if not (home / "lib/libcudart.so").exists():
            (home / "lib/libcudart.so").symlink_to("libcudart.so.13")


class Grid:
    def __init__(self, cases, options):
        self.cases, self.options = cases, options
        self.worlds = Worlds(cases)
        self.scratch = self.worlds.parts.root / "scratch"
        self.scratch.mkdir()

    def environment(self, case, world):
        places = {name: str(path) for name, path in self.worlds.places.items()}
        path = [d for d in os.environ["PATH"].split(":") if not (Path(d) / "nvcc").exists() and "pyenv" not in d]
        given = {"WORLD": str(world.root), "SITE": str(world.site), "site": str(world.site), "HOME": str(world.home), "LANG": "C.UTF-8",
                 "VIRTUAL_ENV": str(world.root / "venv"), "TORCH_EXTENSIONS_DIR": str(world.root / "extensions"), "DS_ACCELERATOR": "cuda",
                 "PYTHONDONTWRITEBYTECODE": "1", "PYTHONNOUSERSITE": "1", "TORCH_NO_COMPILER_WRAPPER": "1", "CHANGE": case.change,
                 "PATH": ":".join([str(world.root / "venv/bin"), *path, "/usr/sbin", "/usr/bin", "/sbin", "/bin"])} | places
        fill = lambda value: re.sub(r"\$(\w+)", lambda match: given[match[1]], value)
        for name, value in case.set.items():
            if name == "PATH+":
                given["PATH"] = value + ":" + given["PATH"]
            elif value is None:
                given.pop(name, None)
            else:
                given[name] = fill(value)
        return given

    def run(self, case, reports):
        world = self.worlds.made[case.world]
        environment = self.environment(case, world)
        include = subprocess.run([world.python, "-c", "import sysconfig; print(sysconfig.get_path('include'))"], capture_output=True,
                                 text=True, check=True).stdout.strip()
        group = str(control_group("memory", case.memory)) if case.memory else None
        order = {"environment": environment, "python": str(world.python), "command": str(BIN / "cudiag"),
                 "group": group, "reports": reports and case.world == "torch13"}
        # What changes the world must not hang on the programs that it takes away.
        shell = f"{PRELUDE}\n{case.change}\nexec \"$PY\" \"$TRUTH\""
        done = subprocess.run(["unshare", "--mount", "bash", "-c", shell], input=json.dumps(order), capture_output=True, text=True,
                              env=environment | {"SCRATCH": str(self.scratch), "VERSION": VERSION, "PY": sys.executable, "TRUTH": str(HERE / "truth.py"),
                                                 "PYTHON_INCLUDE": include, "LD_LIBRARY_PATH": "", "PATH": os.environ["PATH"]})
        for _ in range(12 if group else 0):      # a compiler whose build was given up may still be at it
            leave(Path(group))
            if not Path(group).exists():
                break
        try:
            return json.loads(done.stdout.splitlines()[-1])
        except (IndexError, json.JSONDecodeError):
            raise RuntimeError(f"{case.name}: {done.stdout[-500:]}{done.stderr[-1500:]}") from None


def named(case, doctor):
    """Was the cause named? None where none was to be, or where the case does not say which."""
    slugs = [slug for _, _, slug, _ in doctor.get("reds", [])]
    if case.cause in (None, "?"):
        return None
    return bool(slugs) if case.cause == "*" else case.cause in slugs


class Score:
    """Of one judge: red is the positive verdict, a real failure the positive truth."""

    def __init__(self):
        self.count = Counter()

    def add(self, verdict, really_works):
        if really_works is None:
            return
        if verdict is None:
            self.count["withheld"] += 1
        else:
            self.count[("fails" if not really_works else "works", "red" if not verdict else "good")] += 1

    def line(self, name):
        right_red, wrong_red = self.count["fails", "red"], self.count["works", "red"]
        missed, right_good = self.count["fails", "good"], self.count["works", "good"]
        ratio = lambda part, whole: part / whole if whole else 1.0
        self.precision, self.recall = ratio(right_red, right_red + wrong_red), ratio(right_red, right_red + missed)
        self.judged = right_red + wrong_red + missed + right_good
        return (f"{name:<28}{self.judged:>6}{right_red:>9}{right_good:>9}{wrong_red:>9}{missed:>9}{self.count['withheld']:>10}"
                f"{100 * self.precision:>10.1f} %{100 * self.recall:>8.1f} %")


def health(value):
    return {"green": True, "yellow": True, "red": False, "unknown": None}[value]


def verdict_of_ds_report(report):
    """ds_report's row of fused_adam: [OKAY] in its second column says that it can be built."""
    row = re.search(r"^fused_adam \.+ .*$", re.sub(r"\x1b\[[0-9;]*m", "", report[1] or ""), re.M)
    return {"import": report[0] == 0, "build": None if row is None else "[OKAY]" in row[0] or "[YES]" in row[0]}


def verdict_of_collect_env(report):
    """It gives no verdict: what a reader takes it to say. Build: there is an nvcc and a gcc."""
    text = report[1] or ""
    there = lambda key: bool(re.search(rf"^{key}: (?!Could not collect|N/A|No CUDA).+$", text, re.M))
    return {"import": report[0] == 0 and "PyTorch version: N/A" not in text,
            "build": there("CUDA runtime version") and there("GCC version")}


def main():
    parser = argparse.ArgumentParser(prog="scripts/doctor-truth", description="cudiag doctor against what then really happens.")
    parser.add_argument("--only", help="a regular expression: cases of such names")
    parser.add_argument("--slice", action="store_true", help="the quick part that runs among the tests")
    parser.add_argument("--pairs", type=int, metavar="N", help="instead N environments with two changes each, drawn by chance")
    parser.add_argument("--seed", type=int, default=0, help="of --pairs")
    parser.add_argument("--reports", type=int, default=0, metavar="N", help="ask ds_report and collect_env too, in every Nth case")
    parser.add_argument("--shard", default="0/1", metavar="I/N", help="the Ith of N parts")
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write what was seen, a line a case")
    parser.add_argument("--list", action="store_true", help="name the cases, and do no more")
    parser.add_argument("--from-json", type=Path, nargs="+", metavar="FILE", help="make the table of what was seen before")
    options = parser.parse_args()
    part, parts = map(int, options.shard.split("/"))
    cases = [case for case in (pairs(options.pairs, options.seed) if options.pairs else grid()) if (not options.slice or case.slice) and (not options.only or re.search(options.only, case.name))]
    cases = cases[part::parts]
    if options.list:
        return print("\n".join(case.name for case in cases), f"\n{len(cases)} cases")
    if options.from_json:
        seen = [json.loads(line) for file in options.from_json for line in file.read_text().splitlines()]
        known = {case.name: case for case in cases}
        return sys.exit(judge([(known[each["case"]], each) for each in seen if each["case"] in known]))
    if os.geteuid() != 0 or subprocess.run(["unshare", "--mount", "true"], capture_output=True).returncode != 0:
        raise CannotRun("environments are made in mount namespaces (needs root)")
    results = []
    machine = Grid(cases, options)
    for number, case in enumerate(cases):
        begun = time.monotonic()
        try:
            result = machine.run(case, options.reports and number % options.reports == 0) | {"case": case.name}
        except RuntimeError as error:
            if not options.pairs:
                raise
            print(f"{number + 1:>3}/{len(cases)}         cannot be made: {str(error)[-200:]}", flush=True)    # two changes that exclude each other
            continue
        results.append((case, result))
        if options.json:
            with options.json.open("a") as out:
                out.write(json.dumps(result) + "\n")
        differs = differences(case, result)
        print(f"{number + 1:>3}/{len(cases)} {time.monotonic() - begun:5.1f} s  {'; '.join(differs) or 'agrees':<10} {case.name}", flush=True)
    sys.exit(judge(results))


def differences(case, result):
    doctor, truth = result["doctor"], result["truth"]
    if "crash" in doctor:
        return [f"CRASH {doctor['crash']}"]
    found = [f"{question}: doctor {doctor['answers'][question]} ({doctor['texts'][question][:150]}), really {'works' if truth[question] else 'fails: ' + truth['error'][-200:]}"
             for question in QUESTIONS if truth[question] is not None and health(doctor["answers"][question]) not in (None, truth[question])]
    if named(case, doctor) is False:
        found.append(f"cause {case.cause} not named: {[slug for _, _, slug, _ in doctor['reds']]}")
    works = truth["import"] and truth["build"]
    if case.cause is None and not works and case.world == "torch13":
        found.append(f"the case is not as told: {truth['error'][-200:]}")
    return found


def judge(results):
    scores = {("doctor", q): Score() for q in QUESTIONS} | {(j, q): Score() for j in ("ds_report", "collect_env") for q in QUESTIONS[:2]}
    causes = Counter()
    for case, result in results:
        doctor, truth = result["doctor"], result["truth"]
        for question in QUESTIONS:
            scores["doctor", question].add(health(doctor["answers"][question]) if "answers" in doctor else None, truth[question])
        for name, verdict in (("ds_report", verdict_of_ds_report), ("collect_env", verdict_of_collect_env)):
            if name in result:
                for question, said in verdict(result[name]).items():
                    scores[name, question].add(said, truth[question])
        if named(case, doctor) is not None:
            causes[named(case, doctor)] += 1
    print(f"\n{'judge, question':<28}{'cases':>6}{'red, so':>9}{'good, so':>9}{'red, no':>9}{'missed':>9}{'withheld':>10}{'precision':>12}{'recall':>10}")
    for (name, question), score in scores.items():
        if score.count:
            print(score.line(f"{name}, {question}"))
    whole = Score()
    for question in QUESTIONS:
        whole.count += scores["doctor", question].count
    print(whole.line("doctor, all three"))
    took = sorted(result["doctor"]["took"] for _, result in results)
    print(f"\n{len(results)} environments; the cause was named in {causes[True]} of {sum(causes.values())} that have one; "
          f"doctor took {took[len(took) // 2]:.2f} s (median), {took[-1]:.2f} s at most")
    withheld = whole.count["withheld"]
    return 0 if whole.precision >= LEAST and whole.recall >= LEAST and withheld <= 0.02 * max(1, whole.judged) else 1


if __name__ == "__main__":
    try:
        main()
    except CannotRun as error:
        print(f"cannot run here: {error}")
        sys.exit(77)
