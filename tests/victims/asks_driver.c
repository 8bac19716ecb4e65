/* Does what the lines of its standard input say with a driver, and prints what came of each. One handle and one function are current.
 *
 *   open NAME            dlopen, RTLD_NOW;  global NAME: RTLD_GLOBAL too;  self: dlopen(NULL);  close: dlclose
 *   sym NAME             dlsym in the current handle; (null), (empty)
 *   default NAME, next NAME, bad NAME    dlsym of RTLD_DEFAULT, RTLD_NEXT, and of no handle at all
 *   proc NAME VERSION FLAGS              by the current handle's cuGetProcAddress_v2;  old NAME VERSION FLAGS: by its cuGetProcAddress
 *   call                 calls the current function with 11 addresses of memory that there is (always the same), errno being 42
 *   again N              the same N times, one line
 *   fork                 the same in a fork child
 *   threads N            N threads look the current handle's names up and call cuCtxSynchronize, 2000 times each
 *   quiet N              N calls of the current function: how often malloc was called
 *   time N               N calls of the current function: nanoseconds each
 *   exit N               the last line
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

typedef unsigned long long Word;
typedef int Function(Word, Word, Word, Word, Word, Word, Word, Word, Word, Word, Word);
typedef int Resolve(const char*, void**, int, Word, int*);

static void* handle;
static void* function;
static Resolve *newer, *older;

static int allocations;
extern void* __libc_malloc(size_t);
extern void* __libc_calloc(size_t, size_t);

void* malloc(size_t size) {
    ++allocations;
    return __libc_malloc(size);
}

void* calloc(size_t count, size_t size) {
    ++allocations;
    return __libc_calloc(count, size);
}

/* What is behind a handle or a pointer is looked at by a driver that succeeds, and so by the shim: these are both. */
#define WORD(i) (0x100000000000ULL + 0x100ULL * (i))

static void fill_words(void) {
    char* words = mmap((void*)WORD(0), 0x1000, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
    if (words != (void*)WORD(0)) exit(99);
    for (int i = 0; i < 16; ++i) snprintf(words + 0x100 * i, 0x100, "word %d", i);
}

/* Inline: each verb is a caller of its own. */
__attribute__((always_inline)) static inline int call(void) {
    return ((Function*)function)(WORD(1), WORD(2), WORD(3), WORD(4), WORD(5), WORD(6), WORD(7), WORD(8), WORD(9), WORD(10), WORD(11));
}

static void found(void* address) {
    const char* error = dlerror();
    if (address != NULL) function = address;
    printf("  %s, %s\n", address != NULL ? "found" : "null", error != NULL ? error : "no error");
}

static void* in_thread(void* unused) {
    static const char* const names[] = {"cuInit", "cuMemAlloc_v2", "cuLaunchKernel", "cuNothing", "malloc", "cuda", "cuGetProcAddress_v2"};
    (void)unused;
    Word bad = 0;
    for (int i = 0; i < 2000; ++i) {
        for (size_t j = 0; j < sizeof names / sizeof *names; ++j) {
            bad += (dlsym(handle, names[j]) == NULL) != (j == 3 || j == 5);
            bad += dlsym(RTLD_DEFAULT, names[j]) == NULL && j == 4;
        }
        int (*synchronize)(void) = (int (*)(void))dlsym(handle, "cuCtxSynchronize");
        bad += synchronize == NULL || synchronize() != 0;
    }
    return (void*)(size_t)bad;
}

static double now(void) {
    struct timespec at;
    clock_gettime(CLOCK_MONOTONIC, &at);
    return (double)at.tv_sec * 1e9 + (double)at.tv_nsec;
}

int main(void) {
    static char line[4096], name[2048];
    setvbuf(stdout, NULL, _IOLBF, 0);
    fill_words();
    while (fgets(line, sizeof line, stdin) != NULL) {
        char verb[32] = "";
        int number = 0;
        Word flags = 0;
        name[0] = '\0';
        if (sscanf(line, "%31s %2047s %d %llu", verb, name, &number, &flags) < 1) continue;
        const int count = atoi(name);
        const char* asked = strcmp(name, "(null)") == 0 ? NULL : strcmp(name, "(empty)") == 0 ? "" : name;
        fputs(line, stdout);
        if (strcmp(verb, "open") == 0 || strcmp(verb, "global") == 0) {
            handle = dlopen(asked, RTLD_NOW | (*verb == 'g' ? RTLD_GLOBAL : 0));
            printf("  %s\n", handle != NULL ? "open" : dlerror());
            newer = older = NULL;
        } else if (strcmp(verb, "self") == 0) {
            handle = dlopen(NULL, RTLD_NOW);
        } else if (strcmp(verb, "close") == 0) {
            printf("  %d\n", dlclose(handle));
        } else if (strcmp(verb, "sym") == 0) {
            found(dlsym(handle, asked));
        } else if (strcmp(verb, "default") == 0) {
            found(dlsym(RTLD_DEFAULT, asked));
        } else if (strcmp(verb, "next") == 0) {
            found(dlsym(RTLD_NEXT, asked));
        } else if (strcmp(verb, "bad") == 0) {
            found(dlsym((void*)8, asked));
        } else if (strcmp(verb, "proc") == 0 || strcmp(verb, "old") == 0) {
            if (newer == NULL) newer = (Resolve*)dlsym(handle, "cuGetProcAddress_v2");
            if (older == NULL) older = (Resolve*)dlsym(handle, "cuGetProcAddress");
            (void)dlerror();
            void* address = NULL;
            int status = -1;
            const int result = (*verb == 'p' ? newer : older)(asked, &address, number, flags, &status);
            if (address != NULL) function = address;
            printf("  %d, %s, status %d\n", result, address != NULL ? "found" : "null", status);
        } else if (strcmp(verb, "call") == 0) {
            errno = 42;
            const int result = call();
            printf("  %d, errno %d, %s\n", result, errno, dlerror() == NULL ? "no error" : "an error");
        } else if (strcmp(verb, "again") == 0) {
            long sum = 0;
            for (int i = 0; i < count; ++i) sum += call();
            printf("  %ld\n", sum);
        } else if (strcmp(verb, "fork") == 0) {
            const pid_t child = fork();
            int status = 0;
            if (child == 0) _exit(call());
            waitpid(child, &status, 0);
            printf("  %x\n", status);
        } else if (strcmp(verb, "threads") == 0) {
            pthread_t threads[64];
            Word bad = 0;
            for (int i = 0; i < count; ++i) pthread_create(&threads[i], NULL, in_thread, NULL);
            for (int i = 0; i < count; ++i) {
                void* wrong = NULL;
                pthread_join(threads[i], &wrong);
                bad += (size_t)wrong;
            }
            printf("  %llu wrong\n", bad);
        } else if (strcmp(verb, "quiet") == 0) {
            const int before = allocations;
            for (int i = 0; i < count; ++i) (void)call();
            printf("  %d allocations\n", allocations - before);
        } else if (strcmp(verb, "time") == 0) {
            double best = 1e9;
            for (int round = 0; round < 50; ++round) {
                const double begin = now();
                for (int i = 0; i < count; ++i) (void)call();
                const double took = (now() - begin) / count;
                best = took < best ? took : best;
            }
            printf("  %.2f ns\n", best);
        } else if (strcmp(verb, "exit") == 0) {
            return count;
        }
    }
    return 0;
}
