"""Functions of the driver, asked for in every way: the program gets the same answers, its arguments arrive, its results, errno and
dlerror come back, under the shim as without it."""
import fake_driver
from twin import *

bed = Bed()
program = bed.program("asks_driver.c")
library = fake_driver.build(bed)
older = fake_driver.build(bed, "older/libcuda.so.1", version=11080, without=("cuCtxSynchronize_v2", "cuGetProcAddress_v2", "cuCtxCreate_v4",
                                                                               "cuLibraryLoadData", "cuLaunchKernelEx"))
bed.which("libother.so")
names = [name for name, _ in fake_driver.rows() if name not in (*fake_driver.RESOLVERS, "cuDriverGetVersion")]
absent = ["cu", "cuA", "cuZ", "cuInitX", "cuIni", "cuNothing_v2", "c", "cuda", "cu_", "CU", "(empty)", "x" * 1000, "cuX" * 300, "cudaMalloc",
          "cuBLAS"]

lines = []
for name in names:
    lines += [f"sym {name}", "call"]
for name in absent:
    lines += [f"sym {name}", f"default {name}", f"next {name}"]
lines += ["default cuInit", "next cuInit", "next dlsym", "default dlsym", "next malloc", "default puts"]
# By every version and flag that there is; status and result are the driver's.
for version in (11000, 11080, 12000, 12090, 13000, 99000):
    for name in ("cuCtxSynchronize", "cuCtxCreate", "cuMemAlloc", "cuMemcpyHtoD", "cuStreamSynchronize", "cuLaunchKernel", "cuNothing"):
        for flags in (0, 1, 2):
            lines += [f"proc {name} {version} {flags}", "call", f"old {name} {version} {flags}", "call"]
lines += ["proc (null) 13000 0", "sym cuMemAlloc_v2", "fork", "again 1000"]
of_none = [f"{how} {name}" for name in ["cuInit", "cuGetProcAddress", *absent] for how in ("sym", "default", "next")]

for file in (library, older):
    asked = [line for line in lines if file == library or not line.startswith("proc")]
    for way in ("open", "global"):
        text = "\n".join([f"{way} {file}", *asked, "close", "open libother.so", *of_none, "self", *of_none, "exit 3"])
        both = bed.twin(program, input=text, env={"LD_LIBRARY_PATH": bed.root})
        assert both.under.stdout.count("    cu") > (500 if file == library else 50), both.under.stdout

text = f"open {library}\nthreads 16\nsym cuMemAlloc_v2\nquiet 1000\nexit 0"
both = bed.twin(program, input=text, env={"FAKE_DRIVER_QUIET": 1})
assert "  0 wrong" in both.under.stdout, both.under.stdout

# Errors come back as they are, errno is the program's, and a text that is pending stays so.
fails = {name: 100 + number for number, name in enumerate(names)}
text = "\n".join([f"open {library}", *(line for name in names for line in (f"sym {name}", "call", "call")), "sym cuInit", "fork", "again 3000",
                  "threads 4", "exit 3"])
bed.twin(program, input=text, env=fake_driver.environment(fails, FAKE_DRIVER_QUIET=1))

# A program without a driver has none under the shim either.
both = bed.twin(program, input="\n".join(["open libcuda.so.1", "self", *of_none, "exit 0"]))
assert "found" not in both.under.stdout, both.under.stdout
assert both.recordings() == []

# Names of the driver exist where they did: a weak reference stays null, and what was built without -lcuda does not load.
weak = bed.program("names_a_driver.c", name="weak")
lacks = bed.which("liblacks.so", "-DNEEDS=cuInit")
both = bed.twin(weak, lacks, 0)
assert "no driver" in both.under.stdout and "undefined symbol: cuInit" in both.under.stdout, both.under.stdout
# Who names libcuda.so.1 in its NEEDED gets its functions from ld.so: as ever, and unseen (docs/decisions/0005).
linked = bed.program("names_a_driver.c", "-Wl,--no-as-needed", f"-L{bed.root}", "-l:libcuda.so.1", f"-Wl,-rpath,{bed.root}", name="linked")
both = bed.twin(linked, lacks, 3, env=fake_driver.environment({"cuMemAlloc_v2": 2}))
assert "linked with a driver" in both.under.stdout and both.recorded("cuda_call_failed") == [], both.under.stdout

# Closed and opened again, elsewhere and in between another one: the functions are those of the one that is there.
text = "\n".join(f"open {file}\nsym cuInit\ncall\nsym cuCtxSynchronize_v2\nsym cuCtxSynchronize\ncall\nclose" for file in (library, older, library, older) * 3)
bed.twin(program, input=text + "\nexit 0")
text = "\n".join(f"open {file}\nsym cuInit\ncall\nsym cuCtxSynchronize\ncall" for file in (library, older, library, older))
bed.twin(program, input=text + "\nexit 0")

# What ends a program without us ends it with us.
for line in ("sym (null)", "bad cuInit", "bad malloc"):
    bed.twin(program, input=f"open {library}\n{line}\nexit 0")
print(f"{len(names)} functions, {len(absent)} names of none")
