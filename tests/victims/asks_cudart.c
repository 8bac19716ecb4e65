/* Asks the libcudart that argv[1] names, of whichever release, and prints its answers. Status argv[2]. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

static void* cudart;

static void said(const char* what, int error) {
    const char* (*name_of)(int) = (const char* (*)(int))dlsym(cudart, "cudaGetErrorName");
    const char* (*text_of)(int) = (const char* (*)(int))dlsym(cudart, "cudaGetErrorString");
    int (*last)(void) = (int (*)(void))dlsym(cudart, "cudaGetLastError");
    printf("%s: %d %s, %s, last %d\n", what, error, name_of(error), text_of(error), last());
}

int main(int count, char** arguments) {
    cudart = count > 1 ? dlopen(arguments[1], RTLD_NOW) : NULL;
    if (cudart == NULL) {
        puts(dlerror());
        return 1;
    }
    int devices = -1, version = -1;
    void* memory = NULL;
    said("count", ((int (*)(int*))dlsym(cudart, "cudaGetDeviceCount"))(&devices));
    printf("%d devices\n", devices);
    said("runtime", ((int (*)(int*))dlsym(cudart, "cudaRuntimeGetVersion"))(&version));
    said("driver", ((int (*)(int*))dlsym(cudart, "cudaDriverGetVersion"))(&version));
    printf("version %d\n", version);
    said("set", ((int (*)(int))dlsym(cudart, "cudaSetDevice"))(0));
    said("malloc", ((int (*)(void**, size_t))dlsym(cudart, "cudaMalloc"))(&memory, 1024));
    said("synchronize", ((int (*)(void))dlsym(cudart, "cudaDeviceSynchronize"))());
    said("free", ((int (*)(void*))dlsym(cudart, "cudaFree"))((void*)4096));
    said("unknown", ((int (*)(void))dlsym(cudart, "cudaPeekAtLastError"))());
    return count > 2 ? atoi(arguments[2]) : 0;
}
