"""A library has PTX and no SASS for the GPU: the driver compiles it at each start, and its cache is switched off. The program fails of something
else, much later; what it lost before is told beside that. Over a double; on a real GPU: tests/gpu/nccl_and_jit.py."""
import struct
import sys

from cudiag_scenario import *

sys.path.insert(0, str(Path(__file__).resolve().parents[3] / "twin" / "lib"))
import fake_driver

no_real_driver()
world = World()
PTX = b".version 8.4\n.target sm_80\n.address_size 64\n.visible .entry _Z4goodPfi() { ret; }\n\0"


def image(kind, architecture, payload):
    """One image of a fatbin (diagnose/elf/fatbin.h)."""
    return struct.pack("<HHIQQHHIQQQQ", kind, 0x101, 64, len(payload), 0, 4, 8, architecture, 0, 0x11, 0, 0) + payload


def fatbin(*images):
    return struct.pack("<IHHQ", 0xba55ed50, 1, 16, sum(map(len, images))) + b"".join(images)


(world.root / "ptx.fatbin").write_bytes(fatbin(image(2, 80, b"12345678"), image(1, 80, PTX)))
(world.root / "sass.fatbin").write_bytes(fatbin(image(2, 90, b"12345678"), image(1, 80, PTX)))
CODE = """
__asm__(".section .nv_fatbin,\\"a\\",@progbits\\n.p2align 3\\n.globl code\\ncode: .incbin \\"%s\\"\\n.previous");
extern const char code[];
const void* code_of_library(void) { return code; }
"""
PROGRAM = """
#include <dlfcn.h>
#include <stdio.h>
const void* code_of_library(void);
int main(int argc, char** argv) {
    void *cuda = dlopen("libcuda.so.1", RTLD_NOW), *module, *kernel;
    int (*init)(unsigned) = (int (*)(unsigned))dlsym(cuda, "cuInit");
    int (*load)(void**, const void*) = (int (*)(void**, const void*))dlsym(cuda, "cuModuleLoadData");
    int (*look)(void**, void*, const char*) = (int (*)(void**, void*, const char*))dlsym(cuda, "cuModuleGetFunction");
    int (*launch)(void*, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void*, void*, void*) =
        (int (*)(void*, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void*, void*, void*))dlsym(cuda, "cuLaunchKernel");
    module = (void*)0x4000;
    if (init(0) || load(&module, code_of_library()) || look(&kernel, module, "_Z4goodPfi") ||
        launch(kernel, 1, 1, 1, 32, 1, 1, 0, NULL, NULL, NULL)) return 9;
    if (argc > 1) { fputs("cannot write the result\\n", stderr); return 3; }
    return 0;
}
"""
driver = world.library("driver/libcuda.so.1", fake_driver.source(), "-Wl,-soname,libcuda.so.1", "-w")
world.set |= {"LD_LIBRARY_PATH": str(driver.parent), "FAKE_DRIVER_QUIET": "1", "FAKE_DRIVER_CAPABILITY": "90", "CUDA_CACHE_DISABLE": "1"}
for code in ("ptx", "sass"):
    library = world.library(f"{code}/libmine.so", CODE % (world.root / f"{code}.fatbin"))
    program = world.compile(f"solve-{code}", PROGRAM, library, f"-Wl,-rpath,{library.parent}", "-ldl", "-w")
    for slow, calls in (("cuModuleLoadData=1100", ["cuModuleLoadData"]), ("cuModuleLoadData=200 cuLaunchKernel=900", ["cuLaunchKernel", "cuModuleLoadData"])):
        run = world.under_shim(program, "--fail", env={"FAKE_DRIVER_SLOW": slow})
        run.fails_with("cannot write the result", status=3)
        if code == "sass":
            run.did_not_say("cuda-ptx-jit-slow")               # it was slow, but nothing had to be compiled
            continue
        finding = run.said("cuda-ptx-jit-slow", printed=False, gpu="Double 9000", compute_capability="9.0", cache=has("CUDA_CACHE_DISABLE=1"))
        module, = finding.evidence["modules"]
        assert (module["file"], module["calls"], module["of"]) == (str(library), calls, "the image that was compiled"), module
        assert "sm_80 (SASS), compute_80 (PTX)" in module["architectures"] and "good" in str(module.get("kernels", "good")), module
        assert finding.json["severity"] == "warning" and finding.json["confidence"] == "certain", finding.json
        finding.proposes("unset CUDA_CACHE_DISABLE", first=True).proposes("sm_90")
    # Quick, or a program that is well: nothing.
    run = world.under_shim(program, "--fail", env={"FAKE_DRIVER_SLOW": "cuModuleLoadData=50"})
    run.did_not_say("cuda-ptx-jit-slow")
    world.under_shim(program, env={"FAKE_DRIVER_SLOW": "cuModuleLoadData=1100"}).is_silent()
