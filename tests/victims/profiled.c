/* Launches kernels as its words say: profiled LIBCUDA LIBCUPTI CLIENT WORD... Words: N, so many launches; copy; start, stop, finalize,
 * subscribe (of the client); behind, sets buffer callbacks behind everybody's back; drop; child, a fork that launches once and exits. */
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

typedef int Launch(void*, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void*, void*, void*);

static void call(void* library, const char* name) {
    void (*function)(void) = (void (*)(void))dlsym(library, name);
    function();
}

static void nowhere(uint8_t** buffer, size_t* size, size_t* most) {
    static uint64_t memory[4096];
    *buffer = (uint8_t*)memory, *size = sizeof memory, *most = 0;
}

static void nothing(void* context, uint32_t stream, uint8_t* buffer, size_t size, size_t valid) {}

int main(int argc, char** argv) {
    void* client = dlopen(argv[3], RTLD_NOW);
    void* cuda = dlopen(argv[1], RTLD_NOW);
    void* cupti = dlopen(argv[2], RTLD_NOW);
    if (client == NULL || cuda == NULL || cupti == NULL) {
        puts(dlerror());
        return 99;
    }
    int (*init)(unsigned) = (int (*)(unsigned))dlsym(cuda, "cuInit");
    int (*look)(void**, void*, const char*) = (int (*)(void**, void*, const char*))dlsym(cuda, "cuModuleGetFunction");
    Launch* launch = (Launch*)dlsym(cuda, "cuLaunchKernel");
    void (*kernel)(const char*) = (void (*)(const char*))dlsym(cupti, "fake_cupti_kernel");
    void (*copy)(uint64_t) = (void (*)(uint64_t))dlsym(cupti, "fake_cupti_copy");
    void (*drop)(unsigned) = (void (*)(unsigned))dlsym(cupti, "fake_cupti_drop");
    int (*set)(void*, void*) = (int (*)(void*, void*))dlsym(cupti, "cuptiActivityRegisterCallbacks");
    void* good = NULL;
    init(0);
    for (int i = 4; i < argc; ++i) {
        const char* word = argv[i];
        if (strcmp(word, "look") == 0) look(&good, (void*)0x4000, "_Z4goodPfi");
        else if (strcmp(word, "copy") == 0) copy(4096);
        else if (strcmp(word, "drop") == 0) drop(5);
        else if (strcmp(word, "behind") == 0) set((void*)nowhere, (void*)nothing);
        else if (strcmp(word, "start") == 0) call(client, "client_start");
        else if (strcmp(word, "stop") == 0) call(client, "client_stop");
        else if (strcmp(word, "finalize") == 0) call(client, "client_finalize");
        else if (strcmp(word, "subscribe") == 0) call(client, "client_subscribe");
        else if (strcmp(word, "child") == 0) {
            fflush(stdout);
            if (fork() == 0) return launch(good, 8, 1, 1, 256, 1, 1, 0, NULL, NULL, NULL);
            wait(NULL);
        } else {
            for (int n = atoi(word); n > 0; --n) {
                launch(good, 8, 2, 1, 256, 1, 1, 0, NULL, NULL, NULL);
                kernel("_Z4goodPfi");
            }
        }
    }
    puts("well");
    return 0;
}
