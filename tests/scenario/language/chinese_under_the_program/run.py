"""The explanation under a failing program is in the language of its environment; what the loader said stays as it was."""
from cudiag_scenario import *
from language import english_in

world = World()
world.library("gone/libhelper.so", "int help(void) { return 1; }")
ops = world.library("ops/libfast.so", "int help(void); int fast(void) { return help(); }", "-L", str(world.root / "gone"), "-lhelper")
shutil.rmtree(world.root / "gone")
LOCALE = {"CUDIAG_LANG": "", "LC_ALL": "", "LANG": ""}
CHINESE = "不在任何一个被搜索的目录里"
ENGLISH = "is in no directory searched"


def run(**environment):
    run = world.under_shim(world.python, "-c", f"import ctypes; ctypes.CDLL({str(ops)!r})", env=environment)
    run.fails_with("libhelper.so: cannot open shared object file")
    assert run.report()["findings"][0]["title"].endswith(ENGLISH), "--json is English whatever the language"
    return run


def speaks(run, wanted, other):
    if wanted not in run.spoken() or other in run.spoken():
        fail(f"not said: {wanted}\n{run}")


for chinese in ({"CUDIAG_LANG": "zh", "LC_ALL": "C"}, LOCALE | {"LC_ALL": "zh_CN.UTF-8"},
                LOCALE | {"LC_MESSAGES": "zh_CN.UTF-8", "LC_CTYPE": "C.UTF-8"}):
    told = run(**chinese)
    speaks(told, CHINESE, ENGLISH)
    english = english_in(told.spoken(), told.report(), told.stdout, told.alone[2])
    if english:
        fail(f"English in the Chinese block: {english}\n{told}")
for english in ({"CUDIAG_LANG": "en", "LC_ALL": "zh_CN.UTF-8"}, LOCALE | {"LC_MESSAGES": "zh_CN.UTF-8", "LC_CTYPE": "C"},
                {"CUDIAG_LANG": "tlh"}):
    speaks(run(**english), ENGLISH, CHINESE)
world.cudiag("report", env={"CUDIAG_LANG": "tlh"}).ends_with(2, "CUDIAG_LANG")
for words in (["--help"], ["report", "--help"], ["report", "/nowhere"], ["doctor", "--yes"]):
    asked = world.cudiag(*words, env={"CUDIAG_LANG": "zh"})
    assert re.search("[一-鿿]", asked.stdout + asked.stderr), asked
