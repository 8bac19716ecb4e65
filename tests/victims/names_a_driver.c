/* Names cuInit weakly: is there a driver? argv[1]: a library to open, argv[2]: the status. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

extern int cuInit(unsigned) __attribute__((weak));
extern int cuMemAlloc_v2(void*, size_t) __attribute__((weak));

int main(int count, char** arguments) {
    setvbuf(stdout, NULL, _IOLBF, 0);
    puts(cuInit != NULL ? "linked with a driver" : "no driver");
    if (cuInit != NULL) printf("%d\n", cuInit(0));
    if (cuMemAlloc_v2 != NULL) printf("%d\n", cuMemAlloc_v2(NULL, 1));
    if (count > 1) puts(dlopen(arguments[1], RTLD_NOW) != NULL ? "open" : dlerror());
    return count > 2 ? atoi(arguments[2]) : 0;
}
