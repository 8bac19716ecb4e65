#!/usr/bin/env python3
"""Runs a program under cudiag inside an MLflow run, and keeps what cudiag reports of it: mlflow_report.py -- python finetune.py

The MLflow run gets the artefacts cudiag/report.txt and cudiag/report.json, the slugs of the findings as the tag cudiag.findings, and
the status FAILED if the program failed. The program finds the run in MLFLOW_RUN_ID, and may log into it. Exit status: the program's.
"""
import json
import os
import subprocess
import sys
import tempfile

import mlflow


def report(*words, directory):
    """What `cudiag report` says of the newest run there; "" if nothing was recorded, as of a program in which all is well."""
    done = subprocess.run(["cudiag", "report", *words], env=os.environ | {"CUDIAG_DIR": directory}, stdout=subprocess.PIPE, text=True,
                          check=False)
    return done.stdout if done.returncode in (0, 1) else ""


def main(command):
    if not command:
        print(__doc__.splitlines()[0], file=sys.stderr)
        return 2
    with tempfile.TemporaryDirectory() as directory, mlflow.start_run() as run:
        environment = os.environ | {"CUDIAG_DIR": directory, "MLFLOW_RUN_ID": run.info.run_id}
        status = subprocess.run(["cudiag", "run", "--", *command], env=environment, check=False).returncode
        mlflow.log_metric("exit_status", status)
        if os.listdir(directory):
            told = json.loads(report("--json", directory=directory) or "{}")
            mlflow.log_text(report(directory=directory), "cudiag/report.txt")
            mlflow.log_dict(told, "cudiag/report.json")
            mlflow.set_tag("cudiag.findings", " ".join(finding["slug"] for finding in told.get("findings", [])))
        if status != 0:
            mlflow.end_run("FAILED")
    return status


if __name__ == "__main__":
    sys.exit(main([word for i, word in enumerate(sys.argv[1:]) if (i, word) != (0, "--")]))
