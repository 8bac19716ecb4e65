"""Each row of shim/cuda/driver.def against the declaration of that very name in NVIDIA's own headers, of CUDA 11.8, 12.9 and 13.0:
as many parameters, each passed alike. A name that a release does not have is no error, but 13.0 has them all."""
import fake_driver
from twin import *

if MACHINE:
    cannot_run_here("headers are headers")
need("g++")
sys.path.insert(0, str(TESTS / "scenario" / "lib"))
from machine import CannotRun
from worlds import wheel

CHECK = """
template <class T> struct Kind { static constexpr int value = __is_enum(T) || __is_same(T, int) || __is_same(T, unsigned) ? 4 : 0; };
template <class T> struct Kind<T*> { static constexpr int value = -8; };
template <> struct Kind<unsigned long long> { static constexpr int value = 8; };
template <> struct Kind<unsigned long> { static constexpr int value = 8; };
template <class A, class B> constexpr bool alike = Kind<A>::value != 0 && Kind<A>::value == Kind<B>::value;
template <class A, class B> struct Same { static constexpr bool value = false; };
template <class R, class... A, class S, class... B> requires(sizeof...(A) == sizeof...(B))
struct Same<R(A...), S(B...)> { static constexpr bool value = alike<R, S> && (alike<A, B> && ...); };
"""


def check(include, label):
    # With this set the header declares every exported name as what it is, instead of renaming the plain ones.
    begin = "#define __CUDA_API_VERSION_INTERNAL\n#include <cuda.h>\n"
    preprocessed = subprocess.run(["g++", "-std=c++20", "-E", "-P", "-I", str(include), "-x", "c++", "-"], input=begin, capture_output=True, text=True, check=True).stdout
    declared = set(re.findall(r"\bCUresult\s+(\w+)\s*\(", preprocessed))
    rows = [(name, types) for name, types in fake_driver.rows() if name in declared]
    # A static_assert that never fails would tell nothing: these must not hold.
    wrong = {"int(unsigned, unsigned)": "decltype(::cuInit)", "int(void*)": "decltype(::cuInit)", "int(int, size_t)": "decltype(::cuMemAlloc_v2)"}
    text = begin + CHECK + "".join(f"static_assert(Same<int({', '.join(types)}), decltype(::{name})>::value, \"{name}\");\n" for name, types in rows)
    text += "".join(f"static_assert(!Same<{a}, {b}>::value);\n" for a, b in wrong.items())
    done = subprocess.run(["g++", "-std=c++20", "-fsyntax-only", "-w", "-I", str(include), "-x", "c++", "-"], input=text, capture_output=True, text=True)
    assert done.returncode == 0, f"CUDA {label}\n{done.stderr}"
    print(f"CUDA {label}: {len(rows)} of {len(fake_driver.rows())} names")
    return {name for name, _ in fake_driver.rows()} - declared


try:
    absent = {label: check(wheel(requirement) / folder / "include", label) for label, requirement, folder in (
        ("11.8", "nvidia-cuda-runtime-cu11==11.8.89", "nvidia/cuda_runtime"), ("12.9", "nvidia-cuda-runtime-cu12==12.9.79", "nvidia/cuda_runtime"),
        ("13.0", "nvidia-cuda-runtime==13.0.96", "nvidia/cu13"))}
except CannotRun as why:
    cannot_run_here(why)
assert absent["13.0"] == set(), absent["13.0"]
# The stub that one links with has the names that the driver exports.
stub = Path("/usr/local/cuda/lib64/stubs/libcuda.so")
if stub.exists() and shutil.which("nm"):
    exported = set(re.findall(r" T (\w+)", subprocess.run(["nm", "-D", "--defined-only", str(stub)], capture_output=True, text=True).stdout))
    assert {name for name, _ in fake_driver.rows()} <= exported, {name for name, _ in fake_driver.rows()} - exported
