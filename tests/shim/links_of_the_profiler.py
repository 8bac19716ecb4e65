"""libcudiag-cupti.so is a guest as well: NEEDED, the newest glibc version, exports, no thread-local storage, marks."""
from twin import *

need("readelf", "nm")
library = BIN / "libcudiag-cupti.so"
if not library.exists():
    cannot_run_here("no libcudiag-cupti.so")


def tool(*command):
    return subprocess.run([*command, str(library)], capture_output=True, text=True, check=True).stdout


needed = re.findall(r"\(NEEDED\).*\[(.*)\]", tool("readelf", "-dW"))
assert needed == ["libc.so.6"], needed
versions = sorted({tuple(map(int, v.split("."))) for v in re.findall(r"GLIBC_([0-9.]+)", tool("readelf", "-VW"))})
assert versions[-1] <= (2, 17), versions
exported = set(re.findall(r" [TW] (\w+)", tool("nm", "-D", "--defined-only")))
listed = set(re.findall(r"\w+", re.search(r"global:(.*)local:", (TESTS.parent / "cupti" / "exports.map").read_text(), re.S)[1]))
assert exported == listed, exported ^ listed
# What stands in for CUPTI's functions is in the list of those that are called behind it.
known = set(re.findall(r"^CUDIAG_CUPTI\((\w+)", (TESTS.parent / "cupti" / "cupti.def").read_text(), re.M))
assert {name for name in exported if name.startswith("cupti")} <= known
assert "TLS" not in tool("readelf", "-lW"), "loaded late, there is little room for it"
assert re.search(r"GNU_STACK.*\bRW\b", tool("readelf", "-lW")), "an executable stack"
if "X86-64" in tool("readelf", "-hW"):
    assert "SHSTK" in tool("readelf", "-nW")
assert library.stat().st_size < 100_000, library.stat().st_size
