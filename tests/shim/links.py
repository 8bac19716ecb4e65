"""The file itself: NEEDED, the newest glibc version, exports, relocations, thread-local storage, marks and size."""
from twin import *

need("readelf", "nm")
library = BIN / "libcudiag.so"


def tool(*command):
    return subprocess.run([*command, str(library)], capture_output=True, text=True, check=True).stdout


needed = re.findall(r"\(NEEDED\).*\[(.*)\]", tool("readelf", "-dW"))
assert needed == ["libc.so.6"], needed

# GLIBC_2.17 is CentOS 7, and the first of aarch64.
versions = sorted({tuple(map(int, v.split("."))) for v in re.findall(r"GLIBC_([0-9.]+)", tool("readelf", "-VW"))})
assert versions[-1] <= (2, 17), versions
assert set(re.findall(r"@([A-Z]+)", tool("nm", "-D", "--undefined-only"))) == {"GLIBC"}

source = TESTS.parent / "shim"
exported = set(re.findall(r" [TW] (\w+)", tool("nm", "-D", "--defined-only")))
listed = set(re.findall(r"\w+", re.search(r"global:(.*)local:", (source / "exports.map").read_text(), re.S)[1]))
originals = set(re.findall(r"^CUDIAG_ORIGINAL\((\w+)", (source / "originals.def").read_text(), re.M))
assert exported == listed == originals, (exported ^ listed, listed ^ originals)

# What other libcs lack must be weak: musl binds everything at the start.
weak = set(re.findall(r" w (\w+)", tool("nm", "-D", "--undefined-only")))
assert weak == {"on_exit", "__register_atfork"}, weak

relocations = tool("readelf", "-rW")
for kind in ("DTPMOD", "DTPOFF", "TLSDESC", "TLSGD", "TLSLD", "IRELATIV", "COPY"):
    assert kind not in relocations, f"{kind} in\n{relocations}"
dynamic = tool("readelf", "-dW")
assert "BIND_NOW" not in dynamic and "TEXTREL" not in dynamic and "RPATH" not in dynamic and "RUNPATH" not in dynamic, dynamic
segments = tool("readelf", "-lW")
tls = re.search(r"TLS\s+\S+\s+\S+\s+\S+\s+\S+\s+(0x[0-9a-f]+)", segments)
assert tls is not None and int(tls[1], 16) <= 64, "more than a few words of thread-local storage"
assert re.search(r"GNU_STACK.*\bRW\b", segments), "an executable stack"
if "X86-64" in tool("readelf", "-hW"):
    assert "SHSTK" in tool("readelf", "-nW"), "one unmarked object turns shadow stacks off for the whole process"
# Without what pads segments to pages, which have 64 KiB on aarch64.
loaded = sum(int(size, 16) for size in re.findall(r"LOAD(?:\s+\S+){3}\s+(0x[0-9a-f]+)", segments))
assert 50_000 < loaded < 256_000, loaded
