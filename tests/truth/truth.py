"""`cudiag doctor` against what then happens: one case, in a mount namespace that has been made for it; prints a line of JSON.

What happens is real: torch is imported; torch.utils.cpp_extension builds DeepSpeed's fused_adam, or a kernel where there is
none, and the result is loaded. Where minutes would be spent, a compile is cut to what decides it: the real source is
preprocessed with the real flags (headers, releases, architectures, standards), and a kernel of three lines takes its place
in the compile and the link.
"""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

BUILD = r"""
import os, re, sys
import torch
print("IMPORTED", flush=True)
import torch.utils.cpp_extension as ext
directory, whole, sources, includes = sys.argv[1], sys.argv[2] == "whole", sys.argv[3].split(":"), sys.argv[4].split(":")
run_ninja = ext._run_ninja_build

def run_cut(build, verbose, error_prefix):
    file = os.path.join(build, "build.ninja")
    text = open(file).read()
    flags = re.search("^cuda_cflags = (.*)$", text, re.M)[1]
    first = re.search(r"-gencode=\S+", flags)
    one = re.sub(r"-gencode=\S+", "", flags) + (" " + first[0] if first else "")
    text = text.replace("\nrule compile", f"\ncuda_one = {one}\n\nrule compile", 1)
    text = re.sub(r"command = \$cxx -MMD -MF \$out.d \$cflags -c \$in -o \$out", f"command = $cxx $cflags -E $in -o $out.i && $cxx $cflags -c {directory}/short.cpp -o $out", text)
    text = re.sub(r"command = \$nvcc .*-c \$in -o \$out", f"command = $nvcc $cuda_one -E $in -o $out.i && $nvcc $cuda_cflags -c {directory}/short.cu -o $out", text)
    text = re.sub(r"^ +(deps|depfile) = .*\n", "", text, flags=re.M)
    open(file, "w").write(text)
    assert "cuda_one -E" in text and "cflags -E" in text, text
    run_ninja(build, verbose, error_prefix)

if not whole:
    ext._run_ninja_build = run_cut
open(directory + "/short.cu", "w").write("#include <cuda_runtime.h>\n__global__ void k(float* x) { x[0] = 1; }\nextern \"C\" int go(float* x) { k<<<1, 1>>>(x); return cudaGetLastError(); }\n")
open(directory + "/short.cpp", "w").write("#include <cstdint>\n#include <stdlib.h>\nextern \"C\" int go(float*);\nint twice() { return go(0); }\n")
compiler = ext.get_cxx_compiler()
ext._check_cuda_version(compiler, ext.get_compiler_abi_compatibility_and_version(compiler)[1])     # as BuildExtension does
print("ACCEPTED", flush=True)
loaded = []
load = ext._import_module_from_library
ext._import_module_from_library = lambda *rest: loaded.append(rest)
ext.load("fused_adam", sources, extra_include_paths=includes, is_python_module=False)
print("BUILT", flush=True)
load(*loaded[0])
print("LOADED", flush=True)
"""

# nvcc alone, called as torch would.
BARE = r"""
home=${CUDA_HOME:-${CUDA_PATH:-}}
[ -n "$home" ] || { nvcc=$(command -v nvcc) && home=$(dirname "$(dirname "$nvcc")"); } || home=/usr/local/cuda
printf '#include <cuda_runtime.h>\n__global__ void k(float* x) { x[0] = 1; }\nint go(float* x) { k<<<1, 1>>>(x); return cudaGetLastError(); }\n' > "$1/short.cu"
exec "$home/bin/nvcc" ${CC:+-ccbin "$CC"} -c "$1/short.cu" -o "$1/short.o"
"""

LIMIT_S = 240


def run(command, environment, limit=LIMIT_S, group=None):
    """(status, stdout, stderr); None as the status of what never ended."""
    joined = (lambda: (Path(group) / "cgroup.procs").write_text(str(os.getpid()))) if group else None
    process = subprocess.Popen([str(c) for c in command], env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                               errors="replace", stdin=subprocess.DEVNULL, cwd=environment["WORLD"], start_new_session=True, preexec_fn=joined)
    try:
        out, err = process.communicate(timeout=limit)
        return process.returncode, out, err
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        return None, process.communicate()[0], "never ended"


def doctor(command, python, environment, group):
    begun = time.monotonic()
    status, out, err = run([command, "doctor", "--python", python, "--json"], environment, group=group)
    took = time.monotonic() - begun
    try:
        told = json.loads(out)
    except json.JSONDecodeError:
        return {"crash": f"status {status}: {out[:300]} {err[:300]}", "took": took}
    return {"status": status, "took": round(took, 3), "answers": {a["question"]: a["health"] for a in told["answers"]},
            "reds": [[c["question"], c["name"], (c["finding"] or {}).get("slug"), c["text"]] for c in told["checks"] if c["health"] == "red"],
            "texts": {a["question"]: a["text"] for a in told["answers"]}}


def truth(python, environment, group, whole):
    """{"import", "build", "load"}: True, False, or None where it could not come to that."""
    directory = Path(environment["WORLD"]) / "truth"
    directory.mkdir(exist_ok=True)
    if not (Path(environment["SITE"]) / "torch").exists():
        status, _, err = run(["sh", "-c", BARE, "sh", directory], environment)
        imported = run([python, "-c", "import torch"], environment)[0] == 0
        return {"import": imported, "build": status == 0, "load": None, "error": err[-400:]}
    script = directory / "build.py"
    script.write_text(BUILD)
    ops = Path(environment["SITE"]) / "deepspeed/ops/csrc"
    if ops.exists():
        sources = [ops / "adam/fused_adam_frontend.cpp", ops / "adam/multi_tensor_adam.cu"]
        includes = [ops / "includes", ops / "adam"]
    else:
        sources, includes = [directory / "main.cpp", directory / "fused.cu"], [directory]
        sources[0].write_text("#include <torch/extension.h>\n")
        sources[1].write_text("#include <ATen/ATen.h>\n#include <ATen/AccumulateType.h>\n#include <ATen/cuda/CUDAContext.h>\n#include <ATen/cuda/Exceptions.h>\n")
    limit = 40 if "x/fused_adam" in environment.get("CHANGE", "") else LIMIT_S
    joined = lambda paths: ":".join(map(str, paths))
    status, out, err = run([python, script, directory, "whole" if whole else "cut", joined(sources), joined(includes)], environment, limit, group)
    imported, built = "IMPORTED" in out, "BUILT" in out
    return {"import": imported, "build": built if imported else False, "load": "LOADED" in out if built else None,
            "error": "" if "LOADED" in out else err[-700:]}


def main():
    given = json.loads(sys.stdin.read())
    environment, python = given["environment"], given["python"]
    if given.get("reports"):
        result = {"ds_report": run([python, "-m", "deepspeed.env_report"], environment)[:2],
                  "collect_env": run([python, "-m", "torch.utils.collect_env"], environment)[:2]}
    else:
        result = {}
    result |= {"doctor": doctor(given["command"], python, environment, given["group"]),
               "truth": truth(python, environment, given["group"], given["group"] is not None)}
    print(json.dumps(result))


if __name__ == "__main__":
    main()
