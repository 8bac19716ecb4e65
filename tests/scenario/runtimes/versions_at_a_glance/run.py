"""Which libraries of CUDA a failed process had, of which release and for whom: the report shows two runtimes at one look."""
from cudiag_scenario import *

world = World("nvidia-cuda-runtime-cu12==12.4.127", "nvidia-cuda-runtime==13.0.96", "nvidia-nccl-cu13==2.29.7")
older, newer = world.site / "nvidia/cuda_runtime/lib/libcudart.so.12", world.site / "nvidia/cu13/lib/libcudart.so.13"
ops = world.library("ops/libfused.so", "extern int cudaGetDeviceCount(int*); int ask(int* n) { return cudaGetDeviceCount(n); }",
                    str(newer), f"-Wl,-rpath,{newer.parent}")
train = world.write("train.py", f"""
import ctypes
ctypes.CDLL({str(older)!r}), ctypes.CDLL({str(ops)!r}), ctypes.CDLL("{world.site}/nvidia/nccl/lib/libnccl.so.2")
raise RuntimeError("CUDA error: invalid resource handle")
""")
run = world.under_shim(world.python, train)
run.fails_with("invalid resource handle")

(process,) = run.report()["libraries"]
by_name = {Path(each["path"]).name: each for each in process["libraries"]}
assert set(by_name) == {"libcudart.so.12", "libcudart.so.13", "libnccl.so.2"}, by_name
assert by_name["libcudart.so.12"]["version"] == "12.4.127" and by_name["libcudart.so.13"]["version"] == "13.0.96", by_name
assert by_name["libnccl.so.2"]["version"] == "2.29.7" and "nvidia-nccl-cu13" in by_name["libnccl.so.2"]["package"], by_name
assert by_name["libcudart.so.12"]["twice"] and by_name["libcudart.so.13"]["twice"] and not by_name["libnccl.so.2"]["twice"], by_name
assert by_name["libcudart.so.13"]["needed_by"] == [str(ops)] and by_name["libcudart.so.12"]["needed_by"] == [], by_name

text = world.cudiag("report", run.run_directory(), runs=run.runs, env={"COLUMNS": "80"}).stdout
table = text[text.index("libraries "):]
assert max(map(len, table.splitlines())) <= 80, table
for wanted in (r"libcudart\.so\.12 +12\.4\.127 +twice +by dlopen", r"libcudart\.so\.13 +13\.0\.96 +twice +needed by libfused\.so",
               r"libnccl\.so\.2 +2\.29\.7 +by dlopen"):
    assert re.search(wanted, table), (wanted, table)
assert "libraries " not in run.spoken(), run.spoken()       # the block in place stays short

# A file that is replaced afterwards is not asked for a version that the process never had.
newer.unlink()                                      # a hard link into the store of wheels: never written into
shutil.copy(older, newer)
(process,) = json.loads(world.cudiag("report", "--json", run.run_directory(), runs=run.runs).stdout)["libraries"]
assert {each["since"] for each in process["libraries"] if each["path"] == str(newer)} == {"replaced"}, process
