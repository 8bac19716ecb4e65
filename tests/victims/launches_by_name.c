/* Linked with -lcuda, as some extensions are: launches_by_name LIBCUDA. A good kernel through dlsym, then a bad one by the name that ld.so bound,
 * and a wait, through dlsym again, which tells it. Exit status 3 after an error. */
#include <dlfcn.h>
#include <stdio.h>

int cuModuleGetFunction(void** function, void* module, const char* name);
int cuLaunchKernel(void* function, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void*, void*, void*);

int main(int argc, char** argv) {
    void* cuda = dlopen(argv[1], RTLD_NOW);
    void *good, *wrong;
    if (argc < 2 || cuda == NULL) return 99;
    int (*init)(unsigned) = (int (*)(unsigned))dlsym(cuda, "cuInit");
    int (*look)(void**, void*, const char*) = (int (*)(void**, void*, const char*))dlsym(cuda, "cuModuleGetFunction");
    int (*wait)(void) = (int (*)(void))dlsym(cuda, "cuCtxSynchronize");
    init(0);
    look(&good, (void*)0x4000, "_Z4goodPfi");
    cuModuleGetFunction(&wrong, (void*)0x4000, "_Z5wrongPfm");
    cuLaunchKernel(good, 1, 1, 1, 32, 1, 1, 0, NULL, NULL, NULL);
    cuLaunchKernel(wrong, 1, 1, 1, 32, 1, 1, 0, NULL, NULL, NULL);
    const int result = wait();
    printf("%d\n", result);
    return result == 0 ? 0 : 3;
}
