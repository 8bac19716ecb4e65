"""A provider library like ONNX Runtime's: nothing leads from it to the wheels of CUDA, so it loads only where somebody else
has mapped the same SONAME before. Its loader only logs the error."""
from cudiag_scenario import *

world = World("nvidia-cuda-runtime-cu12==12.4.127")
folder = world.site / "nvidia/cuda_runtime/lib"
provider = world.library("venv/lib/onnxruntime/capi/libonnxruntime_providers_cuda.so",
                         "int cudaGetLastError(); int provider() { return cudaGetLastError(); }", folder / "libcudart.so.12")
world.library("venv/lib/onnxruntime/capi/libonnxruntime.so", """
    #include <dlfcn.h>
    #include <stdio.h>
    int create_session(const char* provider) {
        if (dlopen(provider, RTLD_NOW | RTLD_LOCAL)) return 0;
        fprintf(stderr, "[E:onnxruntime] Failed to load library with error: %s\\n", dlerror());
        return 1;
    }""", "-ldl")
serve = world.write("serve.py", f"""
import ctypes, os, sys
if "first" in sys.argv: ctypes.CDLL({str(folder / 'libcudart.so.12')!r})
onnxruntime = ctypes.CDLL({str(provider.parent / 'libonnxruntime.so')!r})
if onnxruntime.create_session({str(provider)!r}.encode()) != 0:
    raise RuntimeError("Failed to create CUDAExecutionProvider")
""")
world.under_shim(world.python, serve, "first").is_silent()

run = world.under_shim(world.python, serve)
run.fails_with("Failed to load library with error: libcudart.so.12: cannot open shared object file")

finding = run.said("loader-missing-library", library="libcudart.so.12", needed_by=provider,
                   near_misses=has(str(folder / "libcudart.so.12")))
finding.proposes(f"LD_LIBRARY_PATH={folder}", first=True, proved=True)
finding.does_not_propose("pip install .*cuda-runtime")

finding.apply("LD_LIBRARY_PATH=")
world.under_shim(world.python, serve).is_silent()
