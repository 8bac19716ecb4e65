"""Another job cleans the cache in the midst of a build: the directory is gone when the build fails, and its files with it."""
from cudiag_scenario import *

hide_toolkit(compiler=True)
world = World(*NVCC)
home = cuda_home(world)
job = world.write("job.sh", f"""mkdir -p {world.root}/build/fused && cd {world.root}/build/fused
printf '#include <cusparse.h>\\n' > fused.cu
{home}/bin/nvcc -arch=sm_90 -c fused.cu -o fused.o || status=$?
rm -rf {world.root}/build
exit $status
""")

run = world.under_shim("sh", job)
run.fails_with("fused.cu:1:10: fatal error: cusparse.h: No such file or directory", status=1)
for finding in run.findings():                 # what is gone cannot be told for certain: nothing, or the truth
    assert finding.slug == "build-missing-header" and finding.evidence["header"] == "cusparse.h", describe(finding.json)

gone = world.write("gone.sh", f"mkdir -p {world.root}/b && cd {world.root}/b && rmdir {world.root}/b && {home}/bin/nvcc -c fused.cu\n")
run = world.under_shim("sh", gone)
assert run.status != 0, run
run.did_not_say("build-missing-header", "build-out-of-memory", "build-missing-compiler")
