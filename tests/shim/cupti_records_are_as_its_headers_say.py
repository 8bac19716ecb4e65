"""The fields of CUPTI's records that are read, and the functions that are called, against NVIDIA's headers of CUPTI 11.8, 12.8 and 13.0: of
the newest structure of each kind and of each older one that a release may write."""
from twin import *

if MACHINE:
    cannot_run_here("headers are headers")
need("g++")
sys.path.insert(0, str(TESTS / "scenario" / "lib"))
from machine import CannotRun
from worlds import wheel

CHECK = r"""
#include <cuda.h>
#include <cupti.h>
#include "cupti/real.h"
#include "cupti/records.h"
#define SAME(THEIRS, their, OURS, our) static_assert(offsetof(THEIRS, their) == offsetof(cudiag::OURS, our) && sizeof(THEIRS::their) == sizeof(cudiag::OURS::our))
#define KERNEL(T) SAME(T, kind, CuptiKernel, kind); SAME(T, registersPerThread, CuptiKernel, registers); SAME(T, start, CuptiKernel, start); SAME(T, end, CuptiKernel, end); \
    SAME(T, deviceId, CuptiKernel, device); SAME(T, streamId, CuptiKernel, stream); SAME(T, gridX, CuptiKernel, grid[0]); SAME(T, gridZ, CuptiKernel, grid[2]); \
    SAME(T, blockX, CuptiKernel, block[0]); SAME(T, blockZ, CuptiKernel, block[2]); SAME(T, staticSharedMemory, CuptiKernel, static_shared); \
    SAME(T, dynamicSharedMemory, CuptiKernel, dynamic_shared); SAME(T, correlationId, CuptiKernel, correlation); SAME(T, name, CuptiKernel, name);
#define COPY(T) SAME(T, kind, CuptiCopy, kind); SAME(T, copyKind, CuptiCopy, copy_kind); SAME(T, bytes, CuptiCopy, bytes); SAME(T, start, CuptiCopy, start); SAME(T, end, CuptiCopy, end); \
    SAME(T, deviceId, CuptiCopy, device); SAME(T, streamId, CuptiCopy, stream); SAME(T, correlationId, CuptiCopy, correlation);
#define FILL(T) SAME(T, kind, CuptiFill, kind); SAME(T, bytes, CuptiFill, bytes); SAME(T, start, CuptiFill, start); SAME(T, end, CuptiFill, end); \
    SAME(T, deviceId, CuptiFill, device); SAME(T, streamId, CuptiFill, stream); SAME(T, correlationId, CuptiFill, correlation);
static_assert(CUPTI_ACTIVITY_KIND_MEMCPY == cudiag::kKindCopy && CUPTI_ACTIVITY_KIND_MEMSET == cudiag::kKindFill && CUPTI_ACTIVITY_KIND_KERNEL == cudiag::kKindKernel);
static_assert(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL == cudiag::kKindConcurrentKernel && CUPTI_ERROR_NOT_INITIALIZED == cudiag::kCuptiNotInitialized);
template <class T> constexpr int kind = __is_enum(T) || __is_same(T, int) || __is_same(T, unsigned) ? 4 : __is_same(T, unsigned long) ? 8 : 0;
template <class T> constexpr int kind<T*> = -8;
template <class A, class B> constexpr bool same = false;
template <class R, class... A, class S, class... B> requires(sizeof...(A) == sizeof...(B))
constexpr bool same<R(A...), S(B...)> = kind<R> == kind<S> && ((kind<A> != 0 && kind<A> == kind<B>) && ...);
static_assert(!same<int(unsigned), decltype(::cuptiFinalize)> && !same<int(unsigned long), decltype(::cuptiActivityEnable)>);   // else it would hold of anything
"""


def structures(include, name, oldest):
    declared = "".join(path.read_text(errors="replace") for path in include.glob("cupti_activity*.h"))
    numbers = {int(number) for number in re.findall(rf"}}\s*CUpti_Activity{name}(\d+);", declared) if int(number) >= oldest}
    assert numbers, f"no CUpti_Activity{name} in {include}"
    return [f"CUpti_Activity{name}{number}" for number in sorted(numbers)]


def check(label, include, cuda):
    calls = re.findall(r"^CUDIAG_CUPTI\((\w+), (\(.*\))\)$", (TESTS.parent / "cupti/cupti.def").read_text(), re.M)
    declared = "".join(path.read_text(errors="replace") for path in include.glob("cupti_*.h"))
    text = CHECK + "".join(f"{macro}({each})\n" for macro, name, oldest in (("KERNEL", "Kernel", 4), ("COPY", "Memcpy", 3), ("FILL", "Memset", 2)) for each in structures(include, name, oldest))
    present = [(name, types) for name, types in calls if re.search(rf"\b{name}\s*\(", declared)]
    text += "".join(f"static_assert(same<int{types}, decltype(::{name})>, \"{name}\");\n" for name, types in present)
    done = subprocess.run(["g++", "-std=c++20", "-fsyntax-only", "-w", "-I", str(TESTS.parent), "-I", str(include), "-I", str(cuda), "-x", "c++", "-"], input=text, capture_output=True, text=True)
    assert done.returncode == 0, f"CUPTI {label}\n{done.stderr[:3000]}"
    print(f"CUPTI {label}: {len(present)} of {len(calls)} functions")
    return {name for name, _ in calls} - {name for name, _ in present}


try:
    absent = {label: check(label, wheel(cupti) / folder / "include", wheel(runtime) / cuda / "include") for label, cupti, folder, runtime, cuda in (
        ("11.8", "nvidia-cuda-cupti-cu11==11.8.87", "nvidia/cuda_cupti", "nvidia-cuda-runtime-cu11==11.8.89", "nvidia/cuda_runtime"),
        ("12.8", "nvidia-cuda-cupti-cu12==12.8.90", "nvidia/cuda_cupti", "nvidia-cuda-runtime-cu12==12.8.90", "nvidia/cuda_runtime"),
        ("13.0", "nvidia-cuda-cupti==13.0.*", "nvidia/cu13", "nvidia-cuda-runtime==13.0.96", "nvidia/cu13"))}
except CannotRun as why:
    cannot_run_here(why)
assert absent["13.0"] == set() and absent["11.8"] <= {"cuptiSubscribe_v2"}, absent
