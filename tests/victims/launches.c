/* Launches kernels on a driver: launches LIBCUDA STREAMS BEFORE AFTER WAITS [GRAPHS]
 *
 * BEFORE launches of `_Z4goodPfi` in turn on STREAMS streams, one of `_Z5wrongPfm` on stream 1, AFTER good ones; each WAITS launches a wait for a
 * stream. At the end all is waited for. Exit status: 3 after the first error, which is printed. */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

typedef int Look(void**, void*, const char*);
typedef int Launch(void*, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void*, void*, void*);

static void check(const char* what, int result) {
    if (result != 0) {
        printf("%s: %d\n", what, result);
        exit(3);
    }
}

int main(int argc, char** argv) {
    void* cuda = dlopen(argv[1], RTLD_NOW);
    const int count = atoi(argv[2]), before = atoi(argv[3]), after = atoi(argv[4]), waits = atoi(argv[5]);
    if (argc < 6 || cuda == NULL) return 99;
    Look* look = (Look*)dlsym(cuda, "cuModuleGetFunction");
    Launch* launch = (Launch*)dlsym(cuda, "cuLaunchKernel");
    int (*init)(unsigned) = (int (*)(unsigned))dlsym(cuda, "cuInit");
    int (*make)(void**, unsigned) = (int (*)(void**, unsigned))dlsym(cuda, "cuStreamCreate");
    int (*wait)(void*) = (int (*)(void*))dlsym(cuda, "cuStreamSynchronize");
    int (*wait_all)(void) = (int (*)(void))dlsym(cuda, "cuCtxSynchronize");
    int (*instantiate)(void**, void*, unsigned long long) = (int (*)(void**, void*, unsigned long long))dlsym(cuda, "cuGraphInstantiateWithFlags");
    int (*replay)(void*, void*) = (int (*)(void*, void*))dlsym(cuda, "cuGraphLaunch");
    void *good, *wrong, *streams[64] = {NULL};
    check("cuInit", init(0));
    check("cuModuleGetFunction", look(&good, (void*)0x4000, "_Z4goodPfi"));
    check("cuModuleGetFunction", look(&wrong, (void*)0x4000, "_Z5wrongPfm"));
    for (int i = 0; i < count && count > 1; ++i) check("cuStreamCreate", make(&streams[i], 0));
    for (int i = 0; i < before; ++i) {
        check("cuLaunchKernel", launch(good, 8, 1, 1, 256, 1, 1, 0, streams[i % count], NULL, NULL));
        if (waits > 0 && i % waits == waits - 1) check("cuStreamSynchronize", wait(streams[i / waits % count]));
    }
    check("cuLaunchKernel", launch(wrong, 70000, 2, 3, 32, 4, 2, 512, streams[1 % count], NULL, NULL));
    for (int i = 0; i < after; ++i) check("cuLaunchKernel", launch(good, 8, 1, 1, 256, 1, 1, 0, streams[i % count], NULL, NULL));
    if (argc > 6) {
        void* graph = (void*)0x9000;
        check("cuGraphInstantiateWithFlags", instantiate(&graph, (void*)0x8000, 0));
        for (int i = 0; i < atoi(argv[6]); ++i) check("cuGraphLaunch", replay(graph, streams[0]));
    }
    check("cuCtxSynchronize", wait_all());
    puts("well");
    return 0;
}
