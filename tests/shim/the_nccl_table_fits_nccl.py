"""Each row of shim/nccl/calls.def against the declaration of that very name in NCCL's own headers and against the symbols of its libraries,
from 2.10 to the newest wheel: as many parameters, each passed alike, exported, and no two names of ours for one function. A name that a
release does not have is no error, but the newest has them all."""
from twin import *

if MACHINE:
    cannot_run_here("headers are headers")
need("g++", "nm")
sys.path.insert(0, str(TESTS / "scenario" / "lib"))
from machine import CannotRun
from worlds import wheel

CHECK = """
template <class T> struct Kind { static constexpr int value = __is_enum(T) || __is_same(T, int) || __is_same(T, unsigned) ? 4 : 0; };
template <class T> struct Kind<T*> { static constexpr int value = -8; };
template <> struct Kind<unsigned long> { static constexpr int value = 8; };
template <> struct Kind<ncclUniqueId> { static constexpr int value = 128; };
struct UniqueId { char bytes[128]; };
static_assert(sizeof(UniqueId) == sizeof(ncclUniqueId) && alignof(UniqueId) == alignof(ncclUniqueId));
template <> struct Kind<UniqueId> { static constexpr int value = 128; };
template <class A, class B> constexpr bool alike = Kind<A>::value != 0 && Kind<A>::value == Kind<B>::value;
template <class A, class B> struct Same { static constexpr bool value = false; };
template <class R, class... A, class S, class... B> requires(sizeof...(A) == sizeof...(B))
struct Same<R(A...), S(B...)> { static constexpr bool value = alike<R, S> && (alike<A, B> && ...); };
"""
# As much of them as nccl.h uses.
CUDA = {"cuda_runtime.h": "#include <stddef.h>\ntypedef struct CUstream_st* cudaStream_t;\n", "cuda_fp16.h": ""}
WHEELS = ["nvidia-nccl-cu11==2.21.5", "nvidia-nccl-cu12==2.18.3", "nvidia-nccl-cu12==2.27.5", "nvidia-nccl-cu13==2.28.9",
          "nvidia-nccl-cu13==2.29.7", "nvidia-nccl-cu13==2.30.7"]
TABLE = (TESTS.parent / "shim" / "nccl" / "calls.def").read_text()
ROWS = {name: [t.strip() for t in " ".join(types.split()).split(",")] if types else []
        for name, types in re.findall(r"^CUDIAG_NCCL_CALL\((\w+),\s*\(([^)]*)\),\s*\w+\)", TABLE, re.M)}
assert len(ROWS) == TABLE.count("\nCUDIAG_NCCL_CALL("), "a row that this does not read"

bed = Bed()
for name, text in CUDA.items():
    (bed.root / name).write_text(text)


def check(place, label):
    include = place / "nvidia" / "nccl" / "include"
    begin = "#include <nccl.h>\n"
    compiler = ["g++", "-std=c++20", "-w", "-I", str(include), "-I", str(bed.root), "-x", "c++"]
    preprocessed = subprocess.run([*compiler, "-E", "-P", "-"], input=begin, capture_output=True, text=True, check=True).stdout
    declared = set(re.findall(r"\bncclResult_t\s+(nccl\w+)\s*\(", preprocessed))
    there = [(name, types) for name, types in ROWS.items() if name in declared]
    # A static_assert that never fails would tell nothing: these must not hold.
    wrong = {"int(void*, int)": "ncclGetUniqueId", "int(void*, int, int, int)": "ncclCommInitRank", "int(void*, int, int)": "ncclCommInitAll"}
    text = begin + CHECK + "".join(f"static_assert(Same<int({', '.join(types)}), decltype(::{name})>::value, \"{name}\");\n" for name, types in there)
    text += "".join(f"static_assert(!Same<{a}, decltype(::{b})>::value);\n" for a, b in wrong.items())
    text += "static_assert(ncclSuccess == 0 && ncclInternalError == 3);\n"
    text += "static_assert(ncclInProgress == 7);\n" if "ncclInProgress" in preprocessed else ""
    done = subprocess.run([*compiler, "-fsyntax-only", "-"], input=text, capture_output=True, text=True)
    assert done.returncode == 0, f"NCCL {label}\n{done.stderr}"

    library, = (place / "nvidia" / "nccl" / "lib").glob("libnccl.so.2")
    symbols = subprocess.run(["nm", "-D", "--defined-only", str(library)], capture_output=True, text=True, check=True).stdout
    address = {name.split("@")[0]: value for value, name in re.findall(r"^(\w+) [TWi] (\w+\S*)", symbols, re.M)}
    assert {name for name, _ in there} <= set(address), {name for name, _ in there} - set(address)
    assert {"ncclGetErrorString"} <= set(address) and ("ncclGetLastError" in address) == ("ncclGetLastError" in preprocessed)
    ours = [address[name] for name, _ in there]
    assert len(ours) == len(set(ours)), "two names of ours for one function"
    print(f"NCCL {label}: {len(there)} of {len(ROWS)} names")
    return set(ROWS) - declared


try:
    absent = {requirement: check(wheel(requirement), requirement) for requirement in WHEELS}
except CannotRun as why:
    cannot_run_here(why)
assert absent[WHEELS[-1]] == set(), absent[WHEELS[-1]]
