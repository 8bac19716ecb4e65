"""A program in C asks its shared cudart to put an error into words, prints them and ends. cudart raised the error by itself, without a call of the
driver: what was asked for tells which it was."""
from cudiag_scenario import *

no_real_driver()
SOURCE = """
#include <stdio.h>
int cudaSetDevice(int device);
const char* cudaGetErrorString(int error);
int main(int argc, char** argv) {
    const int error = cudaSetDevice(0);
    if (error == 0) return 0;
    fprintf(stderr, "solver: %s\\n", cudaGetErrorString(error));
    if (argc > 1) fprintf(stderr, "solver: going on without a GPU\\n");
    return argc > 1 ? 0 : 2;
}
"""
for requirement, folder, soname, cuda in (("nvidia-cuda-runtime-cu11==11.8.89", "cuda_runtime", "libcudart.so.11.0", "11"),
                                          ("nvidia-cuda-runtime-cu12==12.9.79", "cuda_runtime", "libcudart.so.12", "12.9"),
                                          ("nvidia-cuda-runtime==13.0.96", "cu13", "libcudart.so.13", "13.0")):
    world = World(requirement)
    lib = world.site / "nvidia" / folder / "lib"
    program = world.compile("solver", SOURCE, lib / soname, f"-Wl,-rpath,{lib}")
    run = world.under_shim(program)
    run.fails_with("CUDA driver version is insufficient for CUDA runtime version", status=2)
    finding = run.said("cuda-no-driver", code=35, runtime=ends(soname), runtime_cuda=has(cuda))
    assert finding.json["confidence"] == "likely", finding.json
    run.proposes_nothing_like("[Uu]pgrade", "pip install")
    world.under_shim(program, "--cpu").is_silent()
