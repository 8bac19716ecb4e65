"""One missing library, reported whoever asks for it: a C++ program with dlopen and dlerror, no Python anywhere."""
from cudiag_scenario import *
from broken import fused_without_cudart

world, fused = fused_without_cudart()
server = world.compile("server", """
    #include <dlfcn.h>
    #include <iostream>
    int main(int, char** argv) {
        if (dlopen(argv[1], RTLD_NOW) == nullptr) {
            std::cerr << "server: " << dlerror() << std::endl;
            return 1;
        }
    }""", "-ldl")
run = world.under_shim(server, fused)
run.fails_with("server: libcudart.so.11.0: cannot open shared object file", status=1)
run.said("loader-missing-library", library="libcudart.so.11.0", needed_by=fused)
