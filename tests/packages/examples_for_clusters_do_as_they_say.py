"""examples/slurm.sh and torchrun.sh, with stand-ins for srun, sbatch's variables and torchrun: each rank is recorded, on a directory
that all share, and the report names the rank that failed; examples/mlflow_report.py with a real MLflow and its file store."""
from packages import *

bed = Path(tempfile.mkdtemp())
atexit.register(shutil.rmtree, bed, ignore_errors=True)
examples = TESTS.parent / "examples"
(bed / "bin").mkdir()


def stand_in(name, text):
    (bed / "bin" / name).write_text(text)
    (bed / "bin" / name).chmod(0o755)


# As Slurm's: a task each, with its own numbers, at the same time; the worst status is srun's.
stand_in("srun", """#!/usr/bin/env bash
tasks=2; while [[ $1 == --* ]]; do [[ $1 == --ntasks=* ]] && tasks=1; shift; done
for ((i = 0; i < tasks; i++)); do SLURM_PROCID=$i SLURM_LOCALID=$i SLURM_NTASKS=$tasks "$@" & pids[i]=$!; done
worst=0; for pid in "${pids[@]}"; do wait "$pid" || worst=$?; done; exit "$worst"
""")
# A rank a process below one Python, as torchrun's elastic agent.
stand_in("torchrun", f"""#!{sys.executable}
import os, subprocess, sys
words = [word for word in sys.argv[1:] if not word.startswith("--")]
ranks = [subprocess.Popen([sys.executable, *words], env=os.environ | {{"RANK": str(i), "LOCAL_RANK": str(i)}}) for i in range(2)]
sys.exit(max(rank.wait() for rank in ranks))
""")
# What the doctor says of this machine is not the matter here.
stand_in("cudiag", f"""#!/bin/sh
[ "$1" = doctor ] && exec echo "the doctor was asked"
exec {BIN}/cudiag "$@"
""")
(bed / "train.py").write_text(f"import os\nif os.environ['RANK'] == '1':\n    exec({LOADS!r})\n")
environment = {"PATH": f"{bed}/bin:{os.path.dirname(sys.executable)}:/usr/bin:/bin", "HOME": str(bed), "LC_ALL": "C.UTF-8"}


def run(*command, **variables):
    done = subprocess.run([str(c) for c in command], env=environment | {k: str(v) for k, v in variables.items()}, cwd=bed,
                          capture_output=True, text=True, timeout=LIMIT_S)
    return Result(done.returncode, done.stdout, done.stderr)


job = run(examples / "slurm.sh", "train.py", SLURM_SUBMIT_DIR=bed, SLURM_JOB_ID=17, SLURM_JOB_NUM_NODES=2)
assert job.status == 1 and job.stdout.count("the doctor was asked") == 1, job
assert "error loader-missing-library" in job.stderr and "== rank-1" in job.stdout and "== rank-0" not in job.stdout, job
assert "loader-missing-library" in job.stdout.split("== rank-1")[1], job
assert run(examples / "slurm.sh", "train.py").status != 0   # not in a job

ranks = run(examples / "torchrun.sh", "train.py", CUDIAG_DIR=bed / "shared")
assert ranks.status == 1 and "loader-missing-library" in ranks.stdout, ranks
told = json.loads(run("cudiag", "report", "--json", CUDIAG_DIR=bed / "shared").stdout)
assert [finding["rank"] for finding in told["findings"]] == [1], told["findings"]

python = bed / "venv/bin/python"
subprocess.run([sys.executable, "-m", "venv", bed / "venv"], check=True)
installed = subprocess.run([python, "-m", "pip", "install", "-q", "mlflow-skinny==2.22.1"], capture_output=True, text=True)
if installed.returncode != 0:
    cannot_run_here(f"no mlflow-skinny: {installed.stderr.strip().splitlines()[-1:]}")
(bed / "fails.py").write_text(LOADS)
kept = run(python, examples / "mlflow_report.py", "--", sys.executable, "fails.py", MLFLOW_TRACKING_URI=f"file://{bed}/mlruns")
assert kept.status == 1 and "error loader-missing-library" in kept.stderr, kept
store, = [path for path in (bed / "mlruns/0").iterdir() if path.is_dir()]
assert (store / "tags/cudiag.findings").read_text() == "loader-missing-library"
assert "libcudart.so.12" in (store / "artifacts/cudiag/report.txt").read_text()
assert json.loads((store / "artifacts/cudiag/report.json").read_text())["schema"] == 1
assert "status: 4" in (store / "meta.yaml").read_text()   # FAILED
well = run(python, examples / "mlflow_report.py", "--", sys.executable, "-c", "print('well')", MLFLOW_TRACKING_URI=f"file://{bed}/well")
store, = [path for path in (bed / "well/0").iterdir() if path.is_dir()]
assert well.status == 0 and not (store / "artifacts/cudiag").exists() and "status: 3" in (store / "meta.yaml").read_text(), well
