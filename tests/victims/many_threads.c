/* Threads that load what is there and what is not, each asking why: argv[1] threads, argv[2] rounds, argv[3] a library.
 * Prints, in the order of threads, what each was told; the names are the thread's own, so a mix-up shows. */
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int rounds;
static const char* library;

static void* work(void* argument) {
    const long number = (long)argument;
    char* told = calloc(1, (size_t)rounds * 256 + 1);
    for (int round = 0; told != NULL && round < rounds; ++round) {
        char name[64], line[256];
        snprintf(name, sizeof name, "/absent/thread%ld-round%d.so", number, round);
        void* handle = dlopen(library, RTLD_NOW);
        const void* missing = dlopen(name, RTLD_NOW);
        const char* text = dlerror();
        snprintf(line, sizeof line, "failed %s: %s\n", missing == NULL ? name : "?", text != NULL ? text : "(none)");
        strcat(told, line);
        if (handle == NULL || dlclose(handle) != 0) strcat(told, "trouble\n");
    }
    return told;
}

int main(int count, char** arguments) {
    enum { kMost = 400 };
    static pthread_t threads[kMost];
    const long number = count > 1 ? atol(arguments[1]) : 8;
    rounds = count > 2 ? atoi(arguments[2]) : 10;
    library = count > 3 ? arguments[3] : "libm.so.6";
    for (long i = 0; i < number && i < kMost; ++i) {
        pthread_attr_t attributes;
        pthread_attr_init(&attributes);
        pthread_attr_setstacksize(&attributes, 65536);
        if (pthread_create(&threads[i], &attributes, work, (void*)i) != 0) return 9;
    }
    for (long i = 0; i < number && i < kMost; ++i) {
        void* told = NULL;
        pthread_join(threads[i], &told);
        fputs(told != NULL ? told : "nothing\n", stdout);
        free(told);
    }
    return 3;
}
