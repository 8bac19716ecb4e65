"""The budgets of this project against this machine: run by scripts/bench, which builds what is measured.

Each figure is a ratio or a difference within one run of this program. A verdict with a question mark says that the
machine is too noisy to tell; exit status 1 only where a budget is broken beyond doubt.
"""

import argparse
import json
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
from collections import defaultdict
from pathlib import Path

from measure import interval, pairs, run_once, verdict

# Of the design's budgets; measured where there is a GPU.
ON_A_GPU = [("a kernel's launch (25 ns)", "tests/gpu/launch_cost.py"),
            ("optimizer profile on (1 % of a step)", "tests/gpu/optimizer_profile.py BIN cost"),
            ("own fused AdamW (6.7 ms, 1e9 parameters)", "tests/gpu/adam.py LIBRARY brief")]


class Table:
    """Rows as they are measured, so that a long run shows where it is."""

    def __init__(self):
        self.rows = []
        self.line("what", "budget", "measured", "verdict")

    def line(self, what, budget, measured, judged):
        print(f"{what:<40}{budget:>8}  {measured:<76}{judged}".rstrip(), flush=True)

    def add(self, what, budget, measured, judged, **figures):
        self.rows.append({"what": what, "budget": budget, "measured": measured, "verdict": judged, **figures})
        self.line(what, budget, measured, judged)


class Bench:
    def __init__(self, build, scratch, options):
        self.build, self.scratch, self.options = build, scratch, options
        self.library = (options.bin or build / "bin").resolve() / "libcudiag.so"
        self.runs = scratch / "runs"
        self.table = Table()
        self.without = {"PATH": os.environ.get("PATH", "/usr/bin:/bin"), "HOME": str(scratch), "LANG": "C.UTF-8",
                        "CUDIAG_DIR": str(self.runs)}
        self.within = self.without | {"LD_PRELOAD": str(self.library)}

    def is_loaded(self):
        """ld.so goes on without a preload that it cannot load: then every figure here would be a fine one."""
        maps = subprocess.run(["/bin/cat", "/proc/self/maps"], env=self.within, capture_output=True, text=True)
        return str(self.library.resolve()) in maps.stdout

    # -- the rows

    def events(self):
        """The least of many repetitions: whatever else runs here can only add to it."""
        done = subprocess.run([self.build / "tests/bench/record_bench", "--benchmark_format=json",
                               "--benchmark_enable_random_interleaving=true", "--benchmark_repetitions=25",
                               "--benchmark_min_time=0.02"], capture_output=True, text=True, check=True)
        taken = defaultdict(list)
        for one in json.loads(done.stdout)["benchmarks"]:
            if one["run_type"] == "iteration":
                taken[one["run_name"].replace("/real_time/threads:", " ")].append(one["cpu_time"])
        least = {name: min(times) for name, times in taken.items()}
        clock = least["ticks_alone"]
        for threads in ("1 thread", "2 threads"):
            hot = least[f"append_hot {threads[0]}"]
            # Where reading the clock alone takes longer than the budget, nothing of ours could keep it: said, not hidden.
            judged = "pass" if hot <= 10 else "FAIL" if clock <= 10 else "FAIL, by the clock alone"
            self.table.add(f"a hot event, {threads}", "10 ns",
                           f"{hot:.1f} ns ({clock:.1f} the clock; a plain store {least['plain_store']:.1f})", judged,
                           ns=hot, clock_ns=clock)
        for threads in ("1 thread", "2 threads"):
            cold = least[f"append_cold {threads[0]}"]
            self.table.add(f"a failed load noted, {threads}", "-",
                           f"{cold:.0f} ns (clock_gettime {least['clock_alone']:.0f}; "
                           f"refused by a full log {least['append_to_a_full_log']:.0f})", "", ns=cold)
        what = "instructions, hot / cold (callgrind)"
        if valgrind := shutil.which("valgrind"):
            counts = {kind: self.instructions(valgrind, kind) for kind in ("hot", "cold")}
            self.table.add(what, "-", f"{counts['hot']:.0f} / {counts['cold']:.0f}", "", **counts)
        else:
            self.table.add(what, "-", "not counted: no valgrind here", "skipped")

    def instructions(self, valgrind, kind):
        """Exact, whatever else this machine does: what a thousand events more take, divided."""
        collected = []
        for count in (1000, 2000):
            done = subprocess.run([valgrind, "--tool=callgrind", "--callgrind-out-file=/dev/null",
                                   self.build / "tests/bench/record_count", kind, str(count)],
                                  capture_output=True, text=True, check=True)
            collected.append(int(re.search(r"Collected : (\d+)", done.stderr)[1]))
        return (collected[1] - collected[0]) / 1000

    def driver_call(self):
        """What stands before a function of the CUDA driver, and before dlsym, over the tests' double of libcuda."""
        sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "twin" / "lib"))
        os.environ["CUDIAG_BIN"] = str(self.library.parent)
        import fake_driver
        from twin import Bed
        bed = Bed()
        program, library = bed.program("asks_driver.c"), fake_driver.build(bed)
        script = f"open {library}\nsym cuLaunchKernel\ntime 200000\nexit 0\n"
        added, bare = [], []
        for number in range(15):
            took = {}
            for shim in ((False, True), (True, False))[number % 2]:
                done = bed.run(program, shim=shim, input=script, env={"FAKE_DRIVER_BARE": "1"})
                took[shim] = float(re.search(r"([\d.]+) ns", done.stdout)[1])
            added.append(took[True] - took[False])
            bare.append(took[False])
        found = interval(added)
        self.table.add(f"a launch recorded, {len(added)} pairs", "25 ns",
                       f"{found.median:+.2f} ns [{found.low:+.2f}, {found.high:+.2f}] on {statistics.median(bare):.2f}", verdict(found, 25), ns=found)

    def start_up(self):
        measured = pairs(["/bin/true"], self.without, self.within, self.options.start_ups)
        added = interval([b.wall - a.wall for a, b in measured]).scaled(1e3)
        cpu = statistics.median(b.cpu - a.cpu for a, b in measured) * 1e3
        bare = statistics.median(a.wall for a, _ in measured) * 1e3
        self.table.add(f"start of /bin/true, {len(measured)} pairs", "+0.5 ms",
                       f"{added.median:+.3f} ms [{added.low:+.3f}, {added.high:+.3f}] on {bare:.2f}; processor {cpu:+.3f}",
                       verdict(added, 0.5), ms=added)
        left = [str(path.relative_to(self.scratch)) for path in [self.runs, *self.runs.rglob("*")] if path.exists()]
        self.system_calls(["/bin/true"])
        self.table.add("  files that it leaves", "0", ", ".join(left) or "0", "FAIL" if left else "pass")

    def ratio(self, what, argv, budget, count=None, env=None, calls=True):
        """A program that succeeds, with and without; budget in per cent of the time without."""
        without, within = ({**given, **(env or {})} for given in (self.without, self.within))
        measured = pairs(argv, without, within, count or self.options.imports, self.must_succeed)
        added = interval([100 * (b.wall / a.wall - 1) for a, b in measured])
        cpu = interval([100 * (b.cpu / a.cpu - 1) for a, b in measured])
        least = 100 * (min(b.cpu for _, b in measured) / min(a.cpu for a, _ in measured) - 1)
        bare = statistics.median(a.wall for a, _ in measured)
        self.table.add(f"{what}, {len(measured)} pairs", f"+{budget} %",
                       f"{added.median:+.1f} % [{added.low:+.1f}, {added.high:+.1f}] on {bare:.2f} s; processor "
                       f"{cpu.median:+.1f} %, least {least:+.1f} %",
                       verdict(added, budget), percent=added, cpu_percent=cpu, least_percent=least)
        if calls:
            self.system_calls(argv)
        if left := [str(path.relative_to(self.runs)) for path in self.runs.rglob("*.rec")] + [str(path) for path in self.runs.rglob("*.journal")]:
            self.table.add("  recordings that it leaves", "0", ", ".join(left), "FAIL")

    def system_calls(self, argv):
        """What the shim asks of the kernel in this program and its children: a count, which no noise can blur."""
        strace = shutil.which("strace")
        if strace is None:
            self.table.add("  system calls that it adds", "-", "not counted: no strace here", "skipped")
            return
        counts = []
        for env in (self.without, self.within):
            log = self.scratch / "strace"
            given = [word for name, value in env.items() for word in ("-E", f"{name}={value}")]    # the program's, not strace's own
            subprocess.run([strace, "-f", "-qq", "-o", log, *given, *argv], env=self.without, stdout=subprocess.DEVNULL, check=True)
            counts.append(len(re.findall(r"^\d+ +\w+\(", log.read_text(errors="replace"), re.M)))
        self.table.add("  system calls that it adds", "-", f"{counts[1] - counts[0]:+d} to {counts[0]}", "", added=counts[1] - counts[0])

    @staticmethod
    def must_succeed(took, shimmed):
        if took.status != 0:
            raise RuntimeError(f"exit status {took.status} {'with' if shimmed else 'without'} the shim")

    def import_torch(self, python):
        if python is None:
            self.table.add("import torch", "+1 %", "no Python with torch was given (--python, or --torch)", "skipped")
        else:
            self.ratio("import torch", [str(python), "-c", "import torch"], 1)

    def fused_adam(self, world):
        """DeepSpeed's own JIT build of fused_adam for one architecture, each time from nothing."""
        build = ("import os, shutil; shutil.rmtree(os.environ['TORCH_EXTENSIONS_DIR'], ignore_errors=True)\n"
                 "from deepspeed.ops.op_builder import FusedAdamBuilder\nFusedAdamBuilder().load()")
        self.ratio("a DeepSpeed JIT build of fused_adam", [str(world.python), "-c", build], 2, self.options.builds,
                   world.variables({"DS_ACCELERATOR": "cuda"}), calls=False)

    def compile(self):
        """Four programs and some hundred opens: what a build consists of."""
        compiler = shutil.which("g++")
        if compiler is None:
            self.table.add("a C++ compile", "+2 %", "no g++ here", "skipped")
            return
        source = self.scratch / "a.cpp"
        source.write_text("#include <algorithm>\n#include <map>\n#include <string>\nstd::map<std::string, int> m;\n")
        self.ratio("a C++ compile (g++ -c)", [compiler, "-c", str(source), "-o", str(self.scratch / "a.o")], 2)

    def explanation(self, what, python, before, library):
        """From the failure to the end, with the text under it, less what the end alone takes. The failing program notes when."""
        said, failed = self.scratch / "stderr", self.scratch / "failed"
        argv = [str(python), "-c", f"import ctypes, time{before}\nwith open({str(failed)!r}, 'w') as f:\n"
                                   f"    f.write(f'{{time.monotonic()}} {{time.process_time()}}')\nctypes.CDLL({str(library)!r})"]
        wall, cpu = {False: [], True: []}, {False: [], True: []}

        def note(took, shimmed):
            at, spent = map(float, failed.read_text().split())
            wall[shimmed].append(took.ended - at)
            cpu[shimmed].append(took.cpu - spent)

        took = run_once(argv, self.within, str(said))
        text = said.read_text(errors="replace")
        if took.status == 0 or "\ncudiag: error loader-missing-library\n" not in text:
            last = text.strip().splitlines()[-1:] or ["nothing"]
            self.table.add(what, "1 s", f"exit status {took.status}, nothing explained: {last[0]}", "FAIL")
            return
        measured = pairs(argv, self.without, self.within, self.options.failures, note)
        added = interval([b - a for a, b in zip(wall[False], wall[True])])
        processor = statistics.median(b - a for a, b in zip(cpu[False], cpu[True]))
        self.table.add(f"{what}, {len(measured)} pairs", "1 s",
                       f"{added.median:.2f} s [{added.low:.2f}, {added.high:.2f}]; processor {processor:.2f}", verdict(added, 1.0),
                       seconds=added, processor=processor)

    def doctor(self, python, count=15):
        """cudiag doctor from start to end: a Python that is started once, ld.so and compilers that are only asked."""
        argv = [self.library.parent / "cudiag", "doctor", "--python", str(python), "--json"]
        took = [run_once([str(word) for word in argv], self.without) for _ in range(count + 1)][1:]    # the first fills the page cache
        wall, cpu = interval([each.wall for each in took]), statistics.median(each.cpu for each in took)
        self.table.add(f"cudiag doctor, {count} runs", "1 s", f"{wall.median:.2f} s [{wall.low:.2f}, {wall.high:.2f}]; processor {cpu:.2f}",
                       verdict(wall, 1.0), seconds=wall, processor=cpu)

    def broken_library(self):
        """A library whose NEEDED libcudart.so.11.0 is nowhere: real, made by the linker."""
        source = self.scratch / "stub.c"
        source.write_text("int cudaGetLastError(void) { return 0; }\n")
        needed, library = self.scratch / "libcudart.so.11.0", self.scratch / "libfused_ops.so"
        subprocess.run(["gcc", "-shared", "-fPIC", "-Wl,-soname,libcudart.so.11.0", "-o", needed, source], check=True)
        source.write_text("int cudaGetLastError(void); int run(void) { return cudaGetLastError(); }\n")
        subprocess.run(["gcc", "-shared", "-fPIC", "-o", library, source, needed], check=True)
        needed.unlink()
        return library


def world_of_builds():
    """torch, DeepSpeed and an nvcc, all of wheels."""
    sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "scenario" / "lib"))
    from builds import NVCC, torch_world
    from worlds import DEEPSPEED, Environment, torch_wheels
    world = Environment(*torch_wheels(), *NVCC, *DEEPSPEED)
    torch_world(world)
    return world


def python_with_torch(options):
    """The interpreter to import torch in, or None; a world of the scenario tests where --torch asks for one."""
    if options.python or not options.torch:
        return options.python
    sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "scenario" / "lib"))
    from worlds import Environment, torch_wheels
    return Environment(*torch_wheels()).python


def budgets_of_one_process(bench, options):
    bench.events()
    bench.driver_call()
    bench.start_up()
    bench.compile()
    library = bench.broken_library()
    python = python_with_torch(options)
    bench.import_torch(python)
    system = "/usr/bin/python3" if Path("/usr/bin/python3").exists() else sys.executable
    bench.explanation("a failure explained", system, "", library)
    bench.doctor(python or system)
    if python:
        bench.explanation("the same with torch loaded", python, ", torch", library)
    for name, command in ON_A_GPU:
        bench.table.add(name, "", f"needs a GPU: {command}", "")


def main():
    parser = argparse.ArgumentParser(prog="scripts/bench", description="Prints each budget with what it costs on this machine.")
    parser.add_argument("--build", type=Path, required=True, help=argparse.SUPPRESS)
    parser.add_argument("--bin", type=Path, metavar="DIR", help="measure the libcudiag.so and cudiag there")
    parser.add_argument("--quick", action="store_true", help="a fifth of the runs: for a first look")
    parser.add_argument("--python", help="a Python that has torch")
    parser.add_argument("--torch", action="store_true", help="make one (the scenario tests' wheels; 2 to 4 GB the first time)")
    parser.add_argument("--fused-adam", action="store_true", help="DeepSpeed's build of fused_adam (a minute each), and nothing else")
    parser.add_argument("--builds", type=int, default=7, help="pairs of it (default %(default)s)")
    parser.add_argument("--start-ups", type=int, default=1000, help="pairs of /bin/true (default %(default)s)")
    parser.add_argument("--imports", type=int, default=20, help="pairs of import torch and of compiles (default %(default)s)")
    parser.add_argument("--failures", type=int, default=15, help="pairs of failing programs (default %(default)s)")
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write the rows as JSON")
    options = parser.parse_args()
    if options.quick:
        options.start_ups, options.imports, options.failures = options.start_ups // 5, options.imports // 5, options.failures // 5

    with tempfile.TemporaryDirectory(prefix="cudiag-bench-") as scratch:
        bench = Bench(options.build.resolve(), Path(scratch), options)
        if not bench.is_loaded():
            sys.exit(f"bench: {bench.library} is not loaded by LD_PRELOAD: nothing to measure")
        load = os.getloadavg()[0]
        if options.fused_adam:
            bench.fused_adam(world_of_builds())
        else:
            budgets_of_one_process(bench, options)
        print(f"\n{os.cpu_count()} processors, load {load:.1f}; [low, high]: the median lies there 19 times in 20")
        if options.json:
            options.json.write_text(json.dumps(bench.table.rows, indent=1))
    sys.exit(1 if any(row["verdict"].startswith("FAIL") for row in bench.table.rows) else 0)


if __name__ == "__main__":
    main()
