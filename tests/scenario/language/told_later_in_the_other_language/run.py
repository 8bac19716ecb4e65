"""A finding is judged once, at the failure, and told later in either language, although the world has been mended since."""
from cudiag_scenario import *

world = World()
helper = world.library("gone/libhelper.so", "int help(void) { return 1; }")
ops = world.library("ops/libfast.so", "int help(void); int fast(void) { return help(); }", "-L", str(world.root / "gone"), "-lhelper")
elsewhere = world.root / "elsewhere"
helper.parent.rename(elsewhere)
run = world.under_shim(world.python, "-c", f"import ctypes; ctypes.CDLL({str(ops)!r})")
run.fails_with("libhelper.so: cannot open shared object file")
finding = run.said("loader-missing-library", library="libhelper.so")
kept = (run.run_directory() / "findings.jsonl").read_text()

elsewhere.rename(helper.parent)                                      # the library is there again
for language, words in (("zh", "不在任何一个被搜索的目录里"), ("en", "is in no directory searched")):
    world.cudiag("report", run.run_directory(), env={"CUDIAG_LANG": language, "COLUMNS": "160"}).ends_with(1, words)
assert (run.run_directory() / "findings.jsonl").read_text() == kept, "judged again"
report = json.loads(world.cudiag("report", "--json", run.run_directory(), env={"CUDIAG_LANG": "zh"}).stdout)
assert [f["title"] for f in report["findings"]] == [f.title for f in run.findings()]
assert "said" not in report["findings"][0]
