"""./configure tries 200 headers that are not there, CUDA's among them, and three libraries and programs. That is its trade."""
from cudiag_scenario import *

hide_toolkit(compiler=True)
world = World()
world.activate()
headers = ["cusparse.h", "cublas_v2.h", "cuda_runtime.h", "nccl.h", "cudnn.h"] + [f"sys/absent_{n}.h" for n in range(195)]
script = world.write("package/configure", f"""#!/bin/sh
for header in {' '.join(headers)}; do
    echo "#include <$header>" > conftest.c
    if ${{CC:-cc}} -E conftest.c > conftest.i 2>> config.log; then answer=yes; else answer=no; fi
    echo "checking for $header... $answer"
done
echo "int main(void) {{ return 0; }}" > conftest.c
for library in cudart cusparse nccl; do
    cc -o conftest conftest.c -l$library 2>> config.log && answer=yes || answer=no
    echo "checking for -l$library... $answer"
done
for program in nvcc hipcc icpx; do
    $program --version >> config.log 2>&1 && answer=yes || answer=no
    echo "checking for $program... $answer"
done
rm -f conftest*
exit ${{STATUS:-0}}
""")
script.chmod(0o755)

run = world.under_shim("./configure", cwd=script.parent)
run.is_silent()
assert run.stdout.count("... no") == 206, run

# Another reason ends it: none of the probes is to blame.
run = world.under_shim("./configure", cwd=script.parent, env={"STATUS": "1"})
assert run.status == 1 and "cudiag" not in run.stderr, run
run.did_not_say("build-missing-header", "build-link-failed", "build-missing-compiler")

# Asked to keep and tell everything, it keeps the steps of a build that went well, and blames none of them.
run = world.under_shim("./configure", cwd=script.parent, env={"CUDIAG_PRINT": "all"})
assert run.status == 0 and run.report()["run"]["build"] and run.findings() == [], run
